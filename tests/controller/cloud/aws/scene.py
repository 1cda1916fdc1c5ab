"""The real provider on an account in memory, with one class that is ready to launch from."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import attrs

from controller.clock import FakeClock
from controller.cloud.aws import AwsOperator, AwsSettings
from controller.cloud.aws.shape import TypeShape
from controller.cloud.provider import Instance
from controller.cluster import Mirror, Writer
from controller.kube import Key, kinds
from framework.api import NodeClaim
from framework.api.ec2nodeclass import EC2NodeClass
from tests.controller.cloud.aws.builders import a_shape, node_class_wire
from tests.controller.fakes.aws import Account, a_platform, an_operator
from tests.controller.fakes.world import World

T = TypeVar("T")
ZONES = ("eu-west-2a", "eu-west-2b", "eu-west-2c")
TYPES = (
    *("a1.medium", "c5.large", "c5n.18xlarge", "g4dn.xlarge", "g5.xlarge", "i4i.xlarge", "inf2.xlarge"),
    *("m5.24xlarge", "m5.large", "m5.metal", "m5.xlarge", "m5d.large", "m6g.large", "m6i.large"),
    *("m7i-flex.large", "p4d.24xlarge", "r5.large", "t3.large", "t3.medium", "t4g.medium"),
)
"""Real types of every kind that the tests ask for."""


def shapes(names: Sequence[str] = TYPES) -> list[TypeShape]:
    return [a_shape(name) for name in names]


@attrs.frozen(kw_only=True)
class Launch:
    """What a launch asked EC2 for."""

    instance: Instance
    fleet: dict[str, Any]
    templates: list[dict[str, Any]]
    """The data of every template of the request."""

    @property
    def types(self) -> set[str]:
        return {each["InstanceType"] for each in self.overrides}

    @property
    def overrides(self) -> list[dict[str, Any]]:
        return [each for config in self.fleet["LaunchTemplateConfigs"] for each in config["Overrides"]]

    @property
    def template(self) -> dict[str, Any]:
        (found,) = self.templates
        return found

    @property
    def user_data(self) -> str:
        return base64.b64decode(self.template["UserData"]).decode()


class Scene:
    """A cluster in memory, an account in memory, the provider between them."""

    def __init__(self, offered: Sequence[TypeShape] | None = None, **settings: Any) -> None:
        self.version = "1.34"
        """Of the control plane."""
        self.world = World()
        self.clock = FakeClock(datetime(2026, 6, 1, tzinfo=UTC))
        self.world.clock = self.world.api.clock = self.clock
        self.world.mirror = self.world.api.mirror = Mirror(overlays=True)
        self.world.shell = attrs.evolve(
            self.world.shell,
            clock=self.clock,
            mirror=self.world.mirror,
            writer=Writer(self.world.shell.client, self.world.mirror),
        )
        found = shapes() if offered is None else offered
        prices = {each.name: each.vcpus * 0.05 + number / 10_000 for number, each in enumerate(found)}
        account = Account(
            clock=self.clock,
            zones=ZONES,
            shapes=found,
            on_demand=prices,
            spot={(name, zone): price * 0.4 for name, price in prices.items() for zone in ZONES},
        )
        self.account = a_platform(account)
        defaults = {"cluster_name": "demo", "region": "eu-west-2", "cluster_ca_bundle": "Q0E="}
        self.operator: AwsOperator = an_operator(
            self.account,
            AwsSettings(**{**defaults, **settings}),
            self.world.shell,
            version=lambda: self.version,
        )
        self.world.api.objects.clear()

    async def wait(self, works: Iterable[Coroutine[Any, Any, T]]) -> list[T | BaseException]:
        """Do all of it at once, while time passes."""
        task = asyncio.ensure_future(asyncio.gather(*works, return_exceptions=True))
        while not task.done():
            await self.clock.advance(0.02)
        return task.result()

    async def reconcile(self, controller: str, name: str = "") -> None:
        """Run one of the provider's controllers once; what it raises, it raises here."""
        spec = next(each for each in self.operator.controllers if each.reconciler.name == controller)
        (found,) = await self.wait([spec.reconciler.reconcile(Key(name=name))])
        if isinstance(found, BaseException):
            raise found

    async def resolve(self, **spec: Any) -> EC2NodeClass:
        """Read catalogue and prices, put the class `default`, resolve it, and return it."""
        await self.operator.parts.catalogue.refresh()
        await self.operator.parts.prices.refresh()
        if not self.world.api.exists(kinds.EC2NODECLASS, "default"):
            self.world.api.put(kinds.EC2NODECLASS, node_class_wire(**spec))
        await self.reconcile("nodeclass.hash", "default")
        await self.reconcile("nodeclass", "default")
        found = self.world.mirror.ec2nodeclass("default")
        assert found is not None
        return found

    async def launch(self, claim: NodeClaim) -> Launch:
        """Launch one claim; what the provider raises, it raises here."""
        (made,) = await self.wait([self.operator.provider.create(claim)])
        if isinstance(made, BaseException):
            raise made
        fleet = self.account.asked("CreateFleet")[-1]
        names = [
            each["LaunchTemplateSpecification"]["LaunchTemplateName"]
            for each in fleet["LaunchTemplateConfigs"]
        ]
        return Launch(
            instance=made,
            fleet=fleet,
            templates=[self.account.template_data[name]["LaunchTemplateData"] for name in names],
        )

    async def launch_all(self, claims: Iterable[NodeClaim]) -> list[str]:
        """Launch many claims at once and return the provider ids."""
        found = await self.wait(self.operator.provider.create(claim) for claim in claims)
        assert [each for each in found if isinstance(each, BaseException)] == []
        return [each.provider_id for each in found if isinstance(each, Instance)]
