"""`charpente explain`: why a pod has no node, why a node stays, what a pool may do.

Asks a snapshot or the running cluster. The nearest miss comes first, the remedy last; `--json`
gives the same tree.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import click

from controller.cli.asking import cluster_options, one_cluster, user_errors
from controller.clock import SystemClock
from controller.disruption.explain import NodeReport
from controller.scheduling import Reason
from controller.whatif.explaining import explain_budgets, explain_node, explain_pod, explain_pool
from controller.whatif.forecast import Picture
from controller.whatif.remedies import remedy_of

__all__ = ["explain"]

_QUESTIONS: Final[dict[str, Callable[[Picture, str], Reason | NodeReport]]] = {
    "pod": lambda picture, name: explain_pod(picture, name, SystemClock()),
    "node": explain_node,
    "nodepool": explain_pool,
    "budget": explain_budgets,
}


@click.command("explain")
@click.argument("kind", type=click.Choice(list(_QUESTIONS)))
@click.argument("name", metavar="NAME")
@click.option("--snapshot", metavar="FILE", help="Ask a snapshot, not the running cluster.")
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
@cluster_options
@user_errors
def explain(kind: str, name: str, **given: Any) -> None:
    """Explain the pod [NAMESPACE/]NAME, the node or NodePool NAME, or the budgets of the NodePool NAME."""
    picture = Picture.of(one_cluster(given["snapshot"], given["kubeconfig"], given["cluster_name"]))
    found = _QUESTIONS[kind](picture, name)
    if given["machine"]:
        click.echo(json.dumps(found.to_json(), indent=2))
        return
    click.echo(found.render())
    action = remedy_of(found.reason if isinstance(found, NodeReport) else found)
    if action is not None:
        click.echo(f"Remedy: {action}")
