"""Where Pulumi's engine finds its plugins in a sandbox.

Called by `sandbox.pulumi_aws.engine`. Owns a Pulumi home of the sandbox's own, with
the AWS stand-in and the real Kubernetes provider in the plugin cache and the language
host beside the engine, so that no Pulumi.yaml says anything about the sandbox.
"""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import version
from pathlib import Path

import attrs

_SCRIPT = '#!/bin/sh\nexec {python} -m {module} "$@"\n'


@attrs.frozen(kw_only=True)
class PulumiHome:
    """The folders of one sandbox's Pulumi."""

    root: Path

    @property
    def home(self) -> Path:
        """PULUMI_HOME."""
        return self.root / "home"

    @property
    def programs(self) -> Path:
        """The folder to put first on PATH: engine and language host."""
        return self.root / "bin"

    @property
    def backend(self) -> Path:
        """Where the stacks' states are kept."""
        return self.root / "state"

    def prepare(self, *, engine: Path, kubernetes_provider: Path) -> None:
        """Lay out the folders; doing it again changes nothing."""
        for folder in (self.home, self.programs, self.backend):
            folder.mkdir(parents=True, exist_ok=True)
        _link(self.programs / "pulumi", engine)
        _script(self.programs / "pulumi-language-python", "sandbox.language_host")
        # The engine's name for what runs dynamic resources; the SDK's wheel has no script for it.
        _script(self.programs / "pulumi-resource-pulumi-python", "pulumi.dynamic")
        aws = self._plugin("aws", version("pulumi-aws"))
        _script(aws / "pulumi-resource-aws", "sandbox.pulumi_aws")
        kubernetes = self._plugin("kubernetes", version("pulumi-kubernetes"))
        _link(kubernetes / "pulumi-resource-kubernetes", kubernetes_provider)

    def _plugin(self, name: str, release: str) -> Path:
        folder = self.home / "plugins" / f"resource-{name}-v{release}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _link(place: Path, program: Path) -> None:
    if place.is_symlink() and place.readlink() == program:
        return
    place.unlink(missing_ok=True)
    place.symlink_to(program)


def _script(place: Path, module: str) -> None:
    text = _SCRIPT.format(python=shlex.quote(sys.executable), module=module)
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")
        place.chmod(0o755)
