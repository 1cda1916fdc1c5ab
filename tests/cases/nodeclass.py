"""Cases of node classes: what selectors resolve to, and the user data that a launch would send.

`resolve-nodeclass` runs the node class controller once; `render-userdata` launches one claim of the named
type and reads the template that was made for it.
"""

from __future__ import annotations

import asyncio
import base64
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from email import message_from_string
from typing import Any

import yaml

from controller.cloud.aws.images import image_for
from controller.kube import kinds
from framework.api import labels
from framework.api.ec2nodeclass import AmiFamily
from tests.cases.awsstage import AwsStage, strangers
from tests.cases.files import Variant
from tests.controller.fakes.aws import request_tags

Wire = dict[str, Any]
_TAGGED = {
    "CreateFleet/dry": ("fleet", "instance", "volume"),
    "RunInstances/dry": ("instance", "volume", "network-interface"),
}


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if variant.when not in _RUNS:
        return f"when: {variant.when}"
    unknown = sorted(set(variant.expect.get("userData") or ()) - set(_USER_DATA))
    return f"expects {', '.join(unknown)} of user data" if unknown else strangers(variant, _CHECKS)


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return asyncio.run(_faults(variant))


async def _faults(variant: Variant) -> list[str]:
    stage = AwsStage(variant)
    await _RUNS[variant.when](stage)
    return [
        f"{key}: {fault}" for key, wanted in variant.expect.items() for fault in _CHECKS[key](stage, wanted)
    ]


async def _resolve(stage: AwsStage) -> None:
    await stage.prepare()


async def _launch(stage: AwsStage) -> None:
    await stage.prepare()
    pool = stage.world.api.names(kinds.NODEPOOL)[0]
    template = stage.world.api.read(kinds.NODEPOOL, pool)["spec"]["template"]
    wanted = {"key": labels.INSTANCE_TYPE, "operator": "In", "values": [stage.given["instanceType"]]}
    spec = {**template["spec"], "requirements": [*template["spec"].get("requirements", ()), wanted]}
    own = {**(template.get("metadata") or {}).get("labels", {}), labels.NODEPOOL: pool}
    stage.world.api.put(kinds.NODECLAIM, {"metadata": {"name": "one", "labels": own}, "spec": spec})
    await stage.run(stage.world.lifecycle("one"))


_RUNS: Mapping[str, Callable[[AwsStage], Awaitable[None]]] = {
    "resolve-nodeclass": _resolve,
    "render-userdata": _launch,
}


# One function per key of `expect`; each yields what differs.


def _same(found: object, wanted: object) -> Iterator[str]:
    if found != wanted:
        yield f"{found}, expected {wanted}"


def _subnets(stage: AwsStage, wanted: list[str]) -> Iterator[str]:
    yield from _same(sorted(each.id for each in stage.node_class().status.subnets), sorted(wanted))


def _groups(stage: AwsStage, wanted: list[str]) -> Iterator[str]:
    yield from _same(sorted(each.id for each in stage.node_class().status.security_groups), sorted(wanted))


def _images(stage: AwsStage, wanted: list[str]) -> Iterator[str]:
    yield from _same(sorted({each.id for each in stage.node_class().status.amis}), sorted(wanted))


def _reservations(stage: AwsStage, wanted: list[str]) -> Iterator[str]:
    found = stage.node_class().status.capacity_reservations
    yield from _same(sorted(each.id for each in found), sorted(wanted))


def _image_for_type(stage: AwsStage, wanted: Mapping[str, str | None]) -> Iterator[str]:
    node_class = stage.node_class()
    for name, identifier in wanted.items():
        kind = stage.operator.parts.types.find(node_class, name)
        ami = None if kind is None else image_for(node_class.status.amis, kind.requirements)
        found = None if ami is None else ami.id
        if found != identifier:
            yield f"{name} boots {found}, expected {identifier}"


def _condition(stage: AwsStage, type: str) -> tuple[str, str]:
    for each in stage.node_class().status.conditions:
        if each.type == type:
            return each.status.value, each.reason
    return "", ""


def _ready(stage: AwsStage, wanted: bool) -> Iterator[str]:
    if (_condition(stage, "Ready")[0] == "True") is not wanted:
        not_true = [each for each in stage.node_class().status.conditions if each.status != "True"]
        yield str([(each.type, each.reason, each.message) for each in not_true])


def _conditions(stage: AwsStage, wanted: Mapping[str, Any]) -> Iterator[str]:
    for type, value in wanted.items():
        status, reason = _condition(stage, type)
        if isinstance(value, dict):
            yield from _same(
                {"status": status, "reason": reason} | value, {"status": status, "reason": reason}
            )
        elif str(value) not in (status, reason):
            yield f"{type} is {status}/{reason}, expected {value}"


def _mentions(stage: AwsStage, words: list[str]) -> Iterator[str]:
    missing = stage.missing_words(words)
    if missing:
        yield f"nothing mentions {missing}"


def _warnings(stage: AwsStage, words: list[str]) -> Iterator[str]:
    texts = [event.message for event in stage.world.events.seen if event.type == "Warning"]
    yield from (f"no warning mentions {word}" for word in words if not any(word in text for text in texts))


def _dry_run_tags(stage: AwsStage, wanted: list[str]) -> Iterator[str]:
    for call, resources in _TAGGED.items():
        requests = stage.account.asked(call)
        if not requests:
            yield f"no {call}"
        for request in requests:
            for resource in resources:
                missing = sorted(set(wanted) - set(request_tags(request, resource)))
                if missing:
                    yield f"{call} tags {resource} without {missing}"


def _fleet_calls(stage: AwsStage, wanted: int) -> Iterator[str]:
    yield from _same(len(stage.account.asked("CreateFleet")), wanted)


def _user_data(stage: AwsStage, wanted: Wire) -> Iterator[str]:
    requests = [
        each for each in stage.account.template_data.values() if "UserData" in each["LaunchTemplateData"]
    ]
    launched = {each.instance_type for each in stage.account.instances.values()}
    if not launched or not requests:
        yield f"nothing was launched: {stage.texts()}"
        return
    text = base64.b64decode(requests[-1]["LaunchTemplateData"]["UserData"]).decode()
    family = stage.node_class().spec.resolved_ami_family
    for key, value in wanted.items():
        yield from _USER_DATA[key](text, family, value)


def _parts(text: str) -> list[tuple[str, str]]:
    """Return kind and text of each part; text that is no archive is one part."""
    if not text.startswith(("MIME-Version:", "Content-Type:")):
        return [("text", text)]
    found = []
    for part in message_from_string(text).walk():
        if not part.is_multipart():
            kind = "NodeConfig" if "node.eks.aws" in part.get_content_type() else "shell"
            found.append((kind, str(part.get_payload())))
    return found


def _parts_order(text: str, family: AmiFamily, wanted: list[str]) -> Iterator[str]:
    parts = _parts(text)
    found = [f"{'generated' if part is parts[-1] else 'custom'} {part[0]}" for part in parts]
    short = [each.removesuffix(" script") for each in wanted]
    yield from _same(found, short)


def _effective(text: str, family: AmiFamily, wanted: Wire) -> Iterator[str]:
    if family is AmiFamily.BOTTLEROCKET:
        settings = tomllib.loads(text)["settings"]
        found = {**settings, **settings["kubernetes"]}
    else:
        found = {}
        for kind, part in _parts(text):
            if kind == "NodeConfig":
                found.update(yaml.safe_load(part)["spec"].get("kubelet", {}).get("config", {}))
    for key, value in wanted.items():
        if found.get(key) != value:
            yield f"{key} is {found.get(key)!r}, expected {value!r}"


def _contains(text: str, family: AmiFamily, wanted: list[str]) -> Iterator[str]:
    yield from (f"user data lacks {each!r}" for each in wanted if each not in text)


def _lacks(text: str, family: AmiFamily, wanted: list[str]) -> Iterator[str]:
    yield from (f"user data has {each!r}" for each in wanted if each in text)


_USER_DATA: Mapping[str, Callable[[str, AmiFamily, Any], Iterator[str]]] = {
    "partsOrder": _parts_order,
    "effective": _effective,
    "mustContain": _contains,
    "mustNotContain": _lacks,
}

_CHECKS: Mapping[str, Callable[[AwsStage, Any], Iterator[str]]] = {
    "subnets": _subnets,
    "securityGroups": _groups,
    "images": _images,
    "capacityReservations": _reservations,
    "imageForType": _image_for_type,
    "ready": _ready,
    "conditions": _conditions,
    "conditionMustMention": _mentions,
    "warningsMustMention": _warnings,
    "dryRunTagsMustInclude": _dry_run_tags,
    "fleetCalls": _fleet_calls,
    "userData": _user_data,
}
