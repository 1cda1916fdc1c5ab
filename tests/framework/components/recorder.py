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
    urn: str = ""
    parent: str = ""
    """URN."""
    dependencies: frozenset[str] = frozenset()
    """URNs, by `depends_on` and by inputs."""
    deleted_with: str = ""
    """URN."""
    provider: str = ""
    """URN and id of the provider, as the engine writes it."""


@attrs.define
class Recorder(pulumi.runtime.Mocks):  # type: ignore[misc]  # the SDK's base is untyped
    """Answers like AWS and keeps what was registered."""

    roles: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """IAM roles that exist → their tags."""
    registered: list[Registered] = attrs.field(factory=list)
    calls: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """Answers to look-ups by token, beside those about roles."""
    preview: bool = False
    """Whether what is not an input is unknown yet."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.registered.append(Registered(type=args.typ, name=args.name, inputs=dict(args.inputs)))
        if self.preview:
            return "", dict(args.inputs)
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
        if args.token in self.calls:
            return dict(self.calls[args.token])
        raise AssertionError(f"unexpected call of {args.token}")

    def before(self, found: Registered) -> frozenset[str]:
        """URNs of everything that is made before a resource: what it needs, and what those need in turn."""
        by_urn = {each.urn: each for each in self.registered}
        seen: set[str] = set()
        todo = [*found.dependencies, found.parent, _urn(found.provider)]
        while todo:
            urn = todo.pop()
            if urn in seen or urn not in by_urn:
                continue
            seen.add(urn)
            each = by_urn[urn]
            todo += [*each.dependencies, each.parent, _urn(each.provider)]
        return frozenset(seen)

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


class _Monitor(mocks.MockMonitor):  # type: ignore[misc]  # the SDK's base is untyped
    """The SDK's monitor in memory, which also notes how resources hang together."""

    def RegisterResource(self, request: Any) -> Any:
        answer = super().RegisterResource(request)
        recorder: Recorder = self.mocks
        above = [each.deleted_with for each in recorder.registered if each.urn == request.parent != ""]
        for place, found in enumerate(recorder.registered):
            if (found.type, found.name, found.urn) == (request.type, request.name, ""):
                recorder.registered[place] = attrs.evolve(
                    found,
                    urn=answer.urn,
                    parent=request.parent,
                    dependencies=frozenset(request.dependencies),
                    deleted_with=request.deletedWith or "".join(above),  # the engine hands it down too
                    provider=request.provider,
                )
        return answer


def _urn(provider: str) -> str:
    return provider.rpartition("::")[0]


def declared(
    program: Callable[[], object],
    recorder: Recorder,
    *,
    preview: bool = False,
    config: Mapping[str, str] | None = None,
) -> Recorder:
    """Run a program to its end, in a preview or not, under a stack's configuration.

    In a thread of its own, whose event loop and whose Pulumi globals end with it.
    """
    recorder.preview = preview
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(_run, program, recorder, dict(config or {})).result()
    return recorder


def _run(program: Callable[[], object], recorder: Recorder, config: dict[str, str]) -> None:
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
            pulumi.runtime.set_mocks(recorder, preview=recorder.preview, monitor=_Monitor(recorder))
            pulumi.runtime.set_all_config(config)
            pulumi.runtime.test(lambda: program() and None)()
        finally:
            settings.reset_options()
            loop.run_until_complete(loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
    for each in made:
        each.close()
