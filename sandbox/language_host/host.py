"""The language runtime protocol: run a Python program when the engine says so.

Called by Pulumi's engine over gRPC. Owns finding the program's entry point and
running it in this process; the SDK's own server does the rest. Installs nothing:
dependencies are those of the environment that the host runs in.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from google.protobuf import empty_pb2
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, plugin_pb2


def entry_point(program: Path, entry: str) -> Path:
    """The file to run: `entry` of the program's folder, or its `__main__.py`.

    Raises FileNotFoundError naming the folder when there is none.
    """
    main = program if entry in ("", ".") else program / entry
    if main.is_dir():
        main /= "__main__.py"
    if not main.is_file():
        raise FileNotFoundError(f"{program}: no __main__.py; point `main` in Pulumi.yaml to the program")
    return main


class LanguageHost(LanguageServer):
    """Runs one program."""

    def __init__(self, engine_address: str) -> None:
        """Remember the engine's address, which old engines send at start only."""
        super().__init__(lambda: None)
        self._engine_address = engine_address

    def Handshake(self, request: Any, context: Any) -> Any:
        """Nothing to agree on."""
        return language_pb2.LanguageHandshakeResponse()

    def Run(self, request: Any, context: Any) -> Any:
        """Run the program and answer when its last resource is registered."""
        program = Path(request.info.program_directory or request.pwd)
        main = entry_point(program, request.info.entry_point)
        os.chdir(request.pwd or program)
        for folder in (str(main.parent), request.info.root_directory):
            if folder and folder not in sys.path:
                sys.path.insert(0, folder)
        address = request.args[0] if request.args else self._engine_address
        del request.args[:]
        request.args.append(address)
        self.program = lambda: _run(main)
        return super().Run(request, context)  # type: ignore[no-untyped-call]  # the SDK's server is untyped

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:
        """None in advance: the engine asks for plugins as resources need them."""
        return language_pb2.GetRequiredPackagesResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """The SDK's version."""
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def InstallDependencies(self, request: Any, context: Any) -> Any:
        """Nothing to install."""
        return iter(())

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:
        """No questions."""
        return language_pb2.RuntimeOptionsResponse()

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:
        """Not listed."""
        return language_pb2.GetProgramDependenciesResponse()

    def Cancel(self, request: Any, context: Any) -> Any:
        """The process is ended by signal."""
        return empty_pb2.Empty()


def _run(main: Path) -> None:
    runpy.run_path(str(main), run_name="__main__")
