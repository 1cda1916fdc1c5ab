"""`charpente simulate`: what a change would do, and cost, before it is made.

Puts the changes on a snapshot or on the running cluster, asks the controller's own engine about the result
and prints the difference. Exit code 0: every pod has a place; 1: some have none; 2: wrong input.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import click

from controller.cli.asking import cluster_options, one_cluster, user_errors
from controller.cli.sources import read_sources
from controller.clock import SystemClock
from controller.whatif import Apply, Change, Drain, Impossible, Scale, changed, forecast
from controller.whatif.report import as_json, as_text
from framework.api.linting import Severity, lint
from framework.api.linting.manifests import read_manifests

__all__ = ["simulate"]


@click.command("simulate")
@click.option("--snapshot", metavar="FILE", help="Ask a snapshot, not the running cluster.")
@click.option("--apply", "manifests", multiple=True, metavar="FILE", help="Manifests to apply; - for stdin.")
@click.option(
    "--scale", "scales", multiple=True, metavar="[NAMESPACE/]NAME=PODS", help="Pods a workload is to have."
)
@click.option("--drain", "drains", multiple=True, metavar="NODE", help="A node to take away.")
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
@cluster_options
@user_errors
def simulate(**given: Any) -> None:
    """Show what the controller would do after changes: nodes that come and go, pods that move, the bill."""
    gc.disable()  # a short life full of objects that stay: looking for garbage would take half of it
    before = one_cluster(given["snapshot"], given["kubeconfig"], given["cluster_name"])
    changes: list[Change] = [
        *(change for path in given["manifests"] for change in _applies(path)),
        *(_scale(text) for text in given["scales"]),
        *(Drain(node=node) for node in given["drains"]),
    ]
    found = forecast(before, changed(before, changes), SystemClock())
    click.echo(json.dumps(as_json(found), indent=2) if given["machine"] else as_text(found))
    sys.exit(1 if found.plan.unplaced else 0)


def _applies(path: str) -> list[Apply]:
    """Return the manifests of a path. Raises Impossible with the first thing that is wrong with them."""
    sources = dict(read_sources(path))
    for finding in lint(sources):
        if finding.severity is Severity.ERROR:
            raise Impossible(f"{finding.file}:{finding.line}: {finding.message}")
    found = [each for name, text in sources.items() for each in read_manifests(name, text)[0]]
    return [Apply(manifest=dict(each.raw)) for each in found]


def _scale(text: str) -> Scale:
    workload, equals, pods = text.rpartition("=")
    namespace, _, name = workload.rpartition("/")
    if not (equals and name and pods.isdigit()):
        raise Impossible(f"--scale {text!r} is not [NAMESPACE/]NAME=PODS, such as shop/web=50")
    return Scale(namespace=namespace or "default", name=name, replicas=int(pods))
