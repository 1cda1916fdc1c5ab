"""The call of `/etc/eks/bootstrap.sh` in a shell script, as Amazon Linux 2 images run it."""

from __future__ import annotations

import shlex

from sandbox.nodes.bootstrap import Bootstrap, BootstrapError, parse_kubelet_flags
from sandbox.nodes.user_data.mime import Part

__all__ = ["read", "understands"]

PROGRAM = "/etc/eks/bootstrap.sh"


def understands(part: Part) -> bool:
    """Whether this part is a shell script that calls the bootstrap script."""
    return PROGRAM in part.content


def read(part: Part) -> Bootstrap:
    """Read the call's arguments. Raises: BootstrapError."""
    positional, options = _arguments(part.content)
    if len(positional) != 1:
        raise BootstrapError(f"{PROGRAM} takes one cluster name, not {positional!r}")
    for option in ("--apiserver-endpoint", "--b64-cluster-ca"):
        if option not in options:
            raise BootstrapError(f"{PROGRAM}: {option} is missing")
    labels, taints, settings = parse_kubelet_flags(shlex.split(options.get("--kubelet-extra-args", "")))
    return Bootstrap(
        cluster_name=positional[0],
        endpoint=options["--apiserver-endpoint"],
        certificate_authority=options["--b64-cluster-ca"],
        labels=labels,
        taints=tuple(taints),
        kubelet=settings,
        striped_disks=options.get("--local-disks") == "raid0",
    )


def _arguments(script: str) -> tuple[list[str], dict[str, str]]:
    joined = script.replace("\r", "").replace("\\\n", " ")
    line = next(text for text in joined.splitlines() if PROGRAM in text)
    try:
        words = shlex.split(line[line.index(PROGRAM) + len(PROGRAM) :], comments=True)
    except ValueError as exc:
        raise BootstrapError(f"{PROGRAM}: the call cannot be parsed ({exc})") from exc
    positional: list[str] = []
    options: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            positional.append(word)
        elif words:
            options[word] = words.pop(0)
        else:
            raise BootstrapError(f"{PROGRAM}: {word} has no value")
    return positional, options
