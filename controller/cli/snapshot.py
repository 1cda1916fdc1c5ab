"""`charpente snapshot`: keeps a cluster on file, for `simulate` and `explain` without the cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from controller.cli.asking import cluster_options, user_errors
from controller.cli.cluster import read_cluster
from controller.whatif import dumped

__all__ = ["snapshot"]


@click.command("snapshot")
@click.argument("file", metavar="FILE")
@cluster_options
@user_errors
def snapshot(file: str, kubeconfig: str | None, cluster_name: str | None) -> None:
    """Write the cluster to FILE (- for standard output): objects, shapes and prices as they are now.

    Of pods only what scheduling looks at is kept: no environment, no command, no image.
    """
    content = dumped(read_cluster(kubeconfig, cluster_name))
    if file == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        Path(file).write_bytes(content)
    except OSError as exc:
        raise click.UsageError(f"{file} cannot be written: {exc.strerror}; give another path") from exc
