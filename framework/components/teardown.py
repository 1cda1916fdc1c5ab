"""The resource whose removal takes the nodes down.

Called by the controller's program, which declares it last, so that `pulumi destroy` removes it first: while
the controller still runs and the API server still answers. Owns how `framework.teardown` is run from the
engine's provider process; changes nothing while the stack stands.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import click
import pulumi
import pulumi_aws as aws
import yaml
from pulumi import dynamic

from framework.api import UserError
from framework.teardown import Pace, TearDown


@attrs.frozen(kw_only=True)
class TeardownArgs:
    """Whose nodes, and how patiently."""

    cluster_name: str
    region: str
    kubeconfig: pulumi.Input[str]
    """A kubeconfig, or the path of one."""
    namespace: str
    """The controller's."""
    patience: timedelta = timedelta(minutes=10)
    """How long evictions may be forbidden before nodes are ended all the same."""


class TeardownProvider(dynamic.ResourceProvider):
    """Runs in a process of the engine's; what it prints becomes messages of the update."""

    serialize_as_secret_always = False  # holds nothing: it is found by its module's name

    def create(self, props: Any) -> dynamic.CreateResult:
        """Remember the arguments, which is all that a removal has."""
        return dynamic.CreateResult(id_=props["cluster"], outs=dict(props))

    def update(self, _id: str, _olds: Any, _news: Any) -> dynamic.UpdateResult:
        """Remember new arguments."""
        return dynamic.UpdateResult(outs=dict(_news))

    def delete(self, _id: str, _props: Any) -> None:
        """Take the nodes down. Raises TearDownFailed; the next `destroy` goes on from there."""
        # The clients take a second to load, which only a removal should pay for.
        from framework.teardown.account import AwsAccount
        from framework.teardown.cluster import KubernetesCluster

        TearDown(
            name=_props["cluster"],
            cluster=KubernetesCluster.connect(_loaded(_props["kubeconfig"]), _props["namespace"], _now),
            account=AwsAccount.connect(
                region=_props["region"], cluster=_props["cluster"], profile=_props["profile"] or None
            ),
            pace=Pace(patience=timedelta(seconds=float(_props["patienceSeconds"]))),
            now=_now,
            sleep=time.sleep,  # noqa: TID251 (as for `_now`)
            tell=lambda text: click.echo(text, err=True),
        ).run()


class Teardown(dynamic.Resource, module="charpente", name="Teardown"):
    """Nothing while it is there; its removal ends every node of the cluster's pools and what they leave."""

    def __init__(self, name: str, args: TeardownArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare it; `opts` must depend on the pools, the controller and all that both need."""
        properties = {
            "cluster": args.cluster_name,
            "region": args.region,
            "profile": aws.config.profile or "",
            "kubeconfig": args.kubeconfig,
            "namespace": args.namespace,
            "patienceSeconds": args.patience.total_seconds(),
        }
        longest = (args.patience + 3 * Pace().force).total_seconds()
        timeouts = pulumi.CustomTimeouts(delete=f"{longest:.0f}s")
        options = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(custom_timeouts=timeouts))
        super().__init__(TeardownProvider(), name, properties, options)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 (a process of its own: nobody there to pass a clock in)


def _loaded(kubeconfig: str) -> Mapping[str, Any]:
    """A kubeconfig from its text or its path. Raises UserError."""
    text = kubeconfig if "\n" in kubeconfig or kubeconfig.lstrip().startswith("{") else _read(kubeconfig)
    found = yaml.safe_load(text)
    if not isinstance(found, Mapping):
        raise UserError("charpente:kubeconfig is not a kubeconfig; give the path of one, or its text")
    return found


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"charpente:kubeconfig is {path!r}: {error.strerror}; give a file that exists"
        ) from error
