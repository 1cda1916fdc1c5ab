"""`python -m sandbox.aws`: run the sandbox's AWS until SIGTERM or ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import click

from sandbox.aws.server import AwsServer
from sandbox.errors import StartFailed


@click.command()
@click.option("--port", default=0, show_default=True, help="Port on loopback; 0 takes a free one.")
@click.option("--port-file", type=click.Path(path_type=Path), help="Write the port here once it answers.")
@click.option("--region", default="eu-west-2", show_default=True, help="Region of the control endpoints.")
def main(port: int, port_file: Path | None, region: str) -> None:
    """Run AWS on loopback; prints the endpoint when it answers."""
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    server = AwsServer(region=region, port=port)
    try:
        server.start()
    except StartFailed as exc:
        click.echo(f"sandbox.aws: {exc}", err=True)
        sys.exit(2)
    if port_file:
        temporary = port_file.with_suffix(".tmp")
        temporary.write_text(server.endpoint.rsplit(":", 1)[1])
        temporary.replace(port_file)
    click.echo(server.endpoint)
    sys.stdout.flush()
    done.wait()
    server.stop()


if __name__ == "__main__":
    main()
