"""What the commands that ask about a cluster share: where it is, and how their errors look.

A cluster is a snapshot on file or one that runs. Wrong input is one line on standard error and exit code 2.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec

import click

from controller.whatif import ClusterFile, UnusableFile, loaded
from framework.api import CharpenteError

__all__ = ["cluster_options", "one_cluster", "user_errors"]

P = ParamSpec("P")
Command = Callable[P, None]
_WRONG: Final = 2


def cluster_options(command: Command[P]) -> Command[P]:
    """Add the options that say which running cluster is meant."""
    command = click.option("--cluster-name", help="Name of the EKS cluster. [CLUSTER_NAME]")(command)
    return click.option("--kubeconfig", help="Kubeconfig to use instead of the default one.")(command)


def user_errors(command: Command[P]) -> Command[P]:
    """Print what the user must mend as one line, with exit code 2."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except CharpenteError as exc:
            click.echo(f"charpente: {exc}", err=True)
            sys.exit(_WRONG)

    return guarded


def one_cluster(snapshot: str | None, kubeconfig: str | None, cluster_name: str | None) -> ClusterFile:
    """Return the cluster of the snapshot if one is given, else the running one. Raises CharpenteError."""
    if snapshot is None:
        from controller.cli.cluster import read_cluster  # a file needs no boto3, which loads slowly

        return read_cluster(kubeconfig, cluster_name)
    try:
        content = Path(snapshot).read_bytes()
    except OSError as exc:
        raise UnusableFile(
            f"{snapshot} cannot be read: {exc.strerror}; take a snapshot with `charpente snapshot {snapshot}`"
        ) from exc
    return loaded(content, snapshot)
