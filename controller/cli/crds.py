"""`charpente crds`: the CustomResourceDefinitions, as YAML for kubectl or GitOps.

Prints what `framework.api.crds` generates; reads no cluster.
"""

from __future__ import annotations

import click

from framework.api.crds import ALL_GATES, to_yaml
from framework.api.crds import crds as definitions

__all__ = ["crds"]


@click.command("crds")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    type=click.Choice(sorted(ALL_GATES)),
    help="Include what came after v1.9 behind this gate; may be repeated.",
)
def crds(names: tuple[str, ...], gates: tuple[str, ...]) -> None:
    """Print the CRDs, all or those named (such as nodepools.karpenter.sh)."""
    found = {definition["metadata"]["name"]: definition for definition in definitions(frozenset(gates))}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise click.UsageError(f"no CRD is called {unknown[0]}; use one of {', '.join(found)}")
    click.echo("---\n".join(to_yaml(found[name]) for name in names or found), nl=False)
