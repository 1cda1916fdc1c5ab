"""How a Pulumi plugin starts, says where it listens, and ends.

Called by the provider and by the language host. Owns the process's side of the
engine's contract (spec moto, section E).
"""

from __future__ import annotations

import concurrent.futures
import os
import signal
from collections.abc import Callable
from typing import Any

import grpc

_MAX_MESSAGE_BYTES = 400 * 1024 * 1024
_THREADS = 16


def serve(register: Callable[[Any], None]) -> None:
    """Serve on a free port of loopback until the engine says stop."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(_THREADS),
        options=[
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ],
    )
    register(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()
