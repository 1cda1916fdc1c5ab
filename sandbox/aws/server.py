"""Starting the sandbox's AWS: moto's server with everything of this package in front, on loopback.

`AwsServer` runs it in a thread of this process (unit tests), `AwsProcess` as a process of its own (everything
else). moto's state is process-wide, so a process runs one `AwsServer` at a time, each starting from nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from controller.clock import Clock
from sandbox.errors import StartFailed

__all__ = ["AwsProcess", "AwsServer"]

HOST = "127.0.0.1"
START_SECONDS = 120
"""A start takes 2 s on an idle machine, over 30 s at a load of 14; one that died is noticed at once."""
TICK_SECONDS = 0.1
"""How late a state change and its event may be when nobody asks."""
_SETTINGS = {
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",  # the catalogue has the images; 1,282 more slow every launch
}


@attrs.define(kw_only=True)
class AwsServer:
    """The server in a thread. Use as a context manager."""

    region: str = "eu-west-2"
    port: int = 0
    clock: Clock | None = None
    """The machine's when None."""
    world: Any = attrs.field(default=None, init=False)
    """The running server's `World`."""
    application: Any = attrs.field(default=None, init=False)
    """The WSGI application."""
    _server: Any = attrs.field(default=None, init=False)
    _stop: threading.Event = attrs.field(factory=threading.Event, init=False)

    @property
    def endpoint(self) -> str:
        """The URL for AWS clients."""
        return f"http://{HOST}:{self._server.server_port}"

    def start(self) -> Self:
        """Start from an empty account. Raises StartFailed when the port is taken."""
        os.environ.update(_SETTINGS)
        from sandbox.aws.assembly import application, new_world

        self.world = new_world(self.region, self.clock)
        try:
            self.application = application(self.world, self.clock)
            self._server = _listen(self.port, self.application)
        except (OSError, SystemExit) as exc:
            raise StartFailed(
                f"port {self.port} on {HOST}", f"cannot be used ({exc})", "stop what uses it or choose port 0"
            ) from exc
        threading.Thread(target=self._server.serve_forever, name="aws", daemon=True).start()
        threading.Thread(target=self._tick, name="aws-clock", daemon=True).start()
        return self

    def _tick(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            with self.world.lock:
                self.world.lifecycle.advance(self.world.now())

    def stop(self) -> None:
        """Stop listening; the account's state is gone with the next start."""
        self._stop.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _listen(port: int, application: Any) -> Any:
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):  # type: ignore[misc]  # moto is not typed here
        """Logs nothing: the recorder has every request.

        Each connection carries one request: werkzeug drains the socket after an answer, which would eat the
        next request of a connection kept open.
        """

        protocol_version = "HTTP/1.1"

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Log nothing."""

    return make_server(HOST, port, application, threaded=True, request_handler=Handler)


@attrs.define(kw_only=True)
class AwsProcess:
    """The server as a process of its own. Use as a context manager."""

    region: str = "eu-west-2"
    port: int = 0
    directory: Path
    """Where the port file and the log go."""
    endpoint: str = attrs.field(default="", init=False)
    _process: subprocess.Popen[bytes] | None = attrs.field(default=None, init=False)

    def start(self) -> Self:
        """Start and wait until it answers. Raises StartFailed with the end of the log."""
        self.directory.mkdir(parents=True, exist_ok=True)
        port_file, log = self.directory / "aws.port", self.directory / "aws.log"
        port_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "sandbox.aws", "--port", str(self.port)]
        command += ["--port-file", str(port_file), "--region", self.region]
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise StartFailed(
                    "sandbox.aws", "did not start", f"the end of its log: {log.read_text()[-500:]}"
                )
            time.sleep(0.02)
        self.endpoint = f"http://{HOST}:{port_file.read_text().strip()}"
        return self

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
