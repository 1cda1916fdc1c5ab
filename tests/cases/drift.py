"""Cases of `drift-eval`: which claims are not what their pool and class ask for any more.

Runs the controllers that keep hashes and judge drift, with the real provider on an account in memory. A claim
whose image the case does not give runs the one that its class resolves to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from controller.cloud.aws.images import image_for
from controller.kube import kinds
from framework.api import NODEPOOL_HASH_VERSION, labels
from tests.cases.awsstage import FACTS, AwsStage
from tests.cases.files import Variant

Wire = dict[str, Any]
_FACTS = FACTS | {"catalogLabels", "instances", "schedulingConfig"}
_IGNORES = {"ignoreExtraSecurityGroups": "ExtraSecurityGroups"}
"""How the cases spell what our SchedulingConfig calls a source of drift."""


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if variant.when not in ("drift", "drift-eval"):
        return f"when: {variant.when}"
    facts = sorted(set(variant.given) - _FACTS)
    if facts:
        return f"needs {', '.join(facts)}"
    config = variant.given.get("schedulingConfig") or {}
    strange = sorted((set(config) - {"drift"}) | (set(config.get("drift") or {}) - set(_IGNORES)))
    if strange:
        return f"needs the SchedulingConfig to understand {', '.join(strange)}"
    unknown = sorted(set(variant.expect) - set(_CHECKS))
    return f"expects {', '.join(unknown)}" if unknown else None


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return asyncio.run(_faults(variant))


async def _faults(variant: Variant) -> list[str]:
    stage = _Drift(variant)
    await stage.prepare()
    await stage.judge()
    checks = ((key, _CHECKS[key](stage, wanted)) for key, wanted in variant.expect.items())
    return [f"{key}: {fault}" for key, fault in checks if fault is not None]


class _Drift(AwsStage):
    def __init__(self, variant: Variant) -> None:
        types = variant.catalog["types"]
        for name in set(variant.given.get("catalogLabels") or ()) - {raw["name"] for raw in types}:
            family, _, size = name.partition(".")
            like = next(raw for raw in types if raw["name"].endswith(f".{size}"))
            types.append({**like, "name": name, "family": family})
        super().__init__(variant)

    async def judge(self) -> None:
        """Give every claim its instance, then look at pools and claims once."""
        self._configure()
        listed = {each["id"]: each for each in self.given.get("instances") or ()}
        for name in self.world.api.names(kinds.NODECLAIM):
            await self._boot(name, listed)
        for name in self.world.api.names(kinds.NODEPOOL):
            await self.run(self.world.run("nodepool.hash", name))
        for name in self.world.api.names(kinds.NODECLAIM):
            await self.run(self.world.run("nodeclaim.disruption", name))

    def _configure(self) -> None:
        asked = (self.given.get("schedulingConfig") or {}).get("drift") or {}
        ignored = [_IGNORES[key] for key, value in asked.items() if value]
        reference = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": self.node_class().name}
        if ignored:
            spec = {"nodeClassRef": reference, "driftIgnore": ignored}
            self.world.api.put(kinds.SCHEDULINGCONFIG, {"metadata": {"name": "case"}, "spec": spec})

    async def _boot(self, name: str, listed: Mapping[str, Wire]) -> None:
        claim = self.world.mirror.claims[name]
        reference = claim.spec.node_class_ref
        node_class = self.node_class(reference.name if reference is not None else "default")
        kind = self.operator.parts.types.find(node_class, claim.metadata.labels[labels.INSTANCE_TYPE])
        current = image_for(node_class.status.amis, kind.requirements) if kind is not None else None
        image = claim.status.image_id or (current.id if current is not None else "")
        booted = {"status": {"imageID": image}}
        await self.world.api.patch(kinds.NODECLAIM, name, booted, subresource="status")
        identifier = (claim.status.provider_id or "").rpartition("/")[2]
        groups = [group.id for group in node_class.status.security_groups]
        raw = {"image": image, "securityGroups": groups, **listed.get(identifier, {})}
        raw["tags"] = {labels.NODECLAIM_TAG: name, **(raw.get("tags") or {})}
        self.account.instances[identifier] = self.machine(identifier, raw)

    def drifted(self) -> dict[str, str]:
        """Return the reasons of the claims that drifted, by name."""
        return {
            name: each["reason"]
            for name in self.world.api.names(kinds.NODECLAIM)
            for each in self.world.claim(name)["status"]["conditions"]
            if (each["type"], each["status"]) == ("Drifted", "True")
        }

    def mislabelled(self) -> list[str]:
        """Return the labels that the case's catalogue gives types and ours does not."""
        found = []
        for name, wanted in (self.given.get("catalogLabels") or {}).items():
            kind = self.operator.parts.types.find(self.node_class(), name)
            known = kind.requirements.labels() if kind is not None else {}
            found += [f"{name} {key}" for key, value in wanted.items() if known.get(key) != value]
        return found


def _drifted(stage: _Drift, wanted: Mapping[str, str]) -> str | None:
    found, mislabelled = stage.drifted(), stage.mislabelled()
    if mislabelled:
        return f"the catalogue gives other labels: {mislabelled}"
    return None if found == wanted else f"{found}"


def _not_drifted(stage: _Drift, wanted: list[str]) -> str | None:
    found = sorted(set(wanted) & set(stage.drifted()))
    return f"drifted: {found}" if found else None


def _still_drifted(stage: _Drift, wanted: list[str]) -> str | None:
    missing = sorted(set(wanted) - set(stage.drifted()))
    return f"no longer drifted: {missing}" if missing else None


def _annotations(stage: _Drift, wanted: Mapping[str, Mapping[str, str]]) -> str | None:
    """Compare; the version of a hash is ours, which begins with the number that the case gives."""
    for name, notes in wanted.items():
        found = stage.world.claim(name)["metadata"].get("annotations", {})
        for key, value in notes.items():
            own = NODEPOOL_HASH_VERSION.partition("-")[0] if key == labels.NODEPOOL_HASH_VERSION else None
            if found.get(key) != (NODEPOOL_HASH_VERSION if value == own else value):
                return f"{name}: {key} is {found.get(key)!r}"
    return None


_CHECKS: Mapping[str, Callable[[_Drift, Any], str | None]] = {
    "drifted": _drifted,
    "notDrifted": _not_drifted,
    "stillDrifted": _still_drifted,
    "annotationsAfter": _annotations,
}
