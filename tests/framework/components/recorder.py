"""Programs declared against a monitor in memory: every registered resource is recorded."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import attrs
import pulumi
from pulumi.runtime import mocks, settings


@attrs.frozen(kw_only=True)
class Registered:
    """One resource as the engine would see it."""

    type: str
    name: str
    inputs: Mapping[str, Any]


@attrs.define
class Recorder(pulumi.runtime.Mocks):  # type: ignore[misc]  # the SDK's base is untyped
    """Answers like AWS and keeps what was registered."""

    roles: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """IAM roles that exist → their tags."""
    registered: list[Registered] = attrs.field(factory=list)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.registered.append(Registered(type=args.typ, name=args.name, inputs=dict(args.inputs)))
        state = {"arn": f"arn:aws:mock:::{args.name}", "name": args.inputs.get("name", args.name)}
        if args.typ == "aws:eks/cluster:Cluster":
            state |= {
                "endpoint": "https://demo.eks",
                "certificateAuthority": {"data": "Q0E="},
                "identities": [{"oidcs": [{"issuer": "https://oidc.eks/id/X"}]}],
                "vpcConfig": {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"},
            }
        if args.typ == "aws:sqs/queue:Queue":
            state |= {"url": f"https://sqs/{args.inputs['name']}"}
        return f"{args.name}-id", {**args.inputs, **state}

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        if args.token == "aws:iam/getRoles:getRoles":
            return {"names": list(self.roles), "arns": list(self.roles), "id": "x"}
        if args.token == "aws:iam/getRole:getRole":
            return {"tags": dict(self.roles[args.args["name"]]), "id": "x"}
        raise AssertionError(f"unexpected call of {args.token}")

    def of(self, kind: str) -> list[Registered]:
        """Everything of a type, by the last part of its token."""
        return [
            found
            for found in self.registered
            if found.type.rsplit(":", 1)[-1] == kind and not found.type.startswith("charpente:")
        ]

    def one(self, kind: str) -> Registered:
        """The only one of a type."""
        (found,) = self.of(kind)
        return found


def declared(program: Callable[[], object], recorder: Recorder, *, preview: bool = False) -> Recorder:
    """Run a program to its end, in a preview or not.

    In a thread of its own, whose event loop and whose Pulumi globals end with it.
    """
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(_run, program, recorder, preview).result()
    return recorder


def _run(program: Callable[[], object], recorder: Recorder, preview: bool) -> None:
    made: list[asyncio.AbstractEventLoop] = []
    fresh = asyncio.new_event_loop

    def remembered() -> asyncio.AbstractEventLoop:
        made.append(fresh())
        return made[-1]

    with mock.patch("asyncio.new_event_loop", remembered):  # the SDK's worker threads leave loops open
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            settings.reset_options()
            pulumi.runtime.set_mocks(recorder, preview=preview)
            pulumi.runtime.test(lambda: program() and None)()
        finally:
            settings.reset_options()
            loop.run_until_complete(loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
    for each in made:
        each.close()
