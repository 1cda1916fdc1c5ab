"""What makes objects useless together: pools without types, classes without pools, two configs on one pool.

Called by `framework.api.linting.lint` with every object of ours that could be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import attrs

from framework.api import labels
from framework.api.ec2nodeclass import EC2NodeClass
from framework.api.linting.findings import Finding, Severity
from framework.api.linting.manifests import Manifest
from framework.api.linting.requirement_check import contradiction, known_values, matching_types
from framework.api.metadata import Kind
from framework.api.nodeclaim import NodeClaim
from framework.api.nodepool import NodePool
from framework.api.requirement_spec import Operator, RequirementSpec
from framework.api.schedulingconfig import SchedulingConfig
from framework.api.suggest import nearest

__all__ = ["Known", "crosschecks", "of_kind"]

AnyKind = TypeVar("AnyKind", bound=Kind)

_KEY_LIKENESS: Final = 0.85
"""How alike a key must be to a well-known one to be taken for a slip."""
_POOL_PATH: Final = "spec.template.spec.requirements"


@attrs.frozen(kw_only=True, eq=False)
class Known:
    """An object of ours that could be read, with its place."""

    manifest: Manifest
    obj: Kind
    sound: bool
    """Whether the API server would accept it."""


def of_kind(known: Sequence[Known], kind: type[AnyKind]) -> list[tuple[Manifest, AnyKind]]:
    """Return the objects of one kind, with their places."""
    return [(each.manifest, each.obj) for each in known if isinstance(each.obj, kind)]


def crosschecks(known: Sequence[Known]) -> Iterator[Finding]:
    """Give what is wrong with the objects together."""
    sound = [each for each in known if each.sound]
    for manifest, pool in of_kind(sound, NodePool):
        yield from _spelling(manifest, pool.spec.template.spec.requirements, _POOL_PATH)
        yield from _types(manifest, pool, of_kind(sound, SchedulingConfig))
    for manifest, config in of_kind(sound, SchedulingConfig):
        yield from _spelling(manifest, config.spec.requirements, "spec.requirements")
    yield from _classes(known)
    yield from _configs(known)


def _spelling(manifest: Manifest, listed: Sequence[RequirementSpec], path: str) -> Iterator[Finding]:
    well_known = labels.WELL_KNOWN | labels.AWS_WELL_KNOWN
    for index, requirement in enumerate(listed):
        key, place = requirement.key, f"{path}[{index}]"
        if key not in well_known and key not in labels.NORMALISED:
            near = nearest(key, well_known, cutoff=_KEY_LIKENESS)
            if near is not None:
                yield _slip(manifest, f"{place}.key", key, near)
        values = known_values().get(labels.NORMALISED.get(key, key))
        if values is None or requirement.operator not in (Operator.IN, Operator.NOT_IN):
            continue
        for position, value in enumerate(requirement.values):
            if value not in values:
                near = nearest(value, values)
                yield _slip(manifest, f"{place}.values[{position}]", value, near)


def _slip(manifest: Manifest, field: str, word: str, near: str | None) -> Finding:
    remedy = f"did you mean {near}?" if near else "check the spelling"
    problem = f"is {word!r}, which is not known"
    return manifest.finding(field, problem, remedy, rule="label-spelling", severity=Severity.WARNING)


def _types(
    manifest: Manifest, pool: NodePool, configs: Sequence[tuple[Manifest, SchedulingConfig]]
) -> Iterator[Finding]:
    own = pool.spec.template.spec.requirements
    fault = _without_types(own)
    if fault is not None:
        yield manifest.finding(_POOL_PATH, *fault, rule="pool-without-types")
        return
    for place, config in configs:
        if _governs(config, pool):
            fault = _without_types((*own, *config.spec.requirements))
            if fault is not None:
                problem = f"leave nothing of {pool}: {fault[0]}"
                yield place.finding("spec.requirements", problem, fault[1], rule="pool-without-types")


def _without_types(listed: Sequence[RequirementSpec]) -> tuple[str, str] | None:
    """Return why no type meets the requirements, and a remedy; None when some type does."""
    key = contradiction(listed)
    if key is not None:
        return f"cannot be met together on {key}", "remove one of them, or list a value that all allow"
    if not matching_types(listed):
        return "exclude every instance type", "loosen one of them"
    return None


def _classes(known: Sequence[Known]) -> Iterator[Finding]:
    classes = {node_class.name: place for place, node_class in of_kind(known, EC2NodeClass)}
    wanted: set[str] = set()
    references = [
        (place, "spec.template.spec.nodeClassRef.name", pool.spec.template.spec.node_class_ref)
        for place, pool in of_kind(known, NodePool)
    ]
    references += [
        (place, "spec.nodeClassRef.name", claim.spec.node_class_ref)
        for place, claim in of_kind(known, NodeClaim)
        if claim.spec.node_class_ref is not None
    ]
    for place, field, ref in references:
        if ref.group != labels.AWS_GROUP:
            continue
        wanted.add(ref.name)
        if classes and ref.name not in classes:
            near = nearest(ref.name, classes)
            remedy = f"did you mean {near}?" if near else "add it, unless it is in the cluster already"
            problem = f"is {ref.name!r}, and no EC2NodeClass here is called so"
            yield place.finding(field, problem, remedy, rule="pool-class-missing", severity=Severity.WARNING)
    for name, place in classes.items():
        if name not in wanted:
            remedy = "point a NodePool at it, unless one in the cluster does, or remove it"
            yield place.finding(
                "", "is used by no NodePool here", remedy, rule="class-unused", severity=Severity.WARNING
            )


def _configs(known: Sequence[Known]) -> Iterator[Finding]:
    pools = of_kind(known, NodePool)
    configs = of_kind(known, SchedulingConfig)
    for index, (place, config) in enumerate(configs):
        governed = [pool for _, pool in pools if _governs(config, pool)]
        if pools and not governed:
            problem, remedy = "governs no NodePool here", "point nodeClassRef and nodePoolSelector at one"
            yield place.finding("spec", problem, remedy, rule="config-unused", severity=Severity.WARNING)
        for _, earlier in configs[:index]:
            shared = sorted(pool.name for pool in governed if _governs(earlier, pool))
            if shared:
                problem = f"governs {', '.join(shared)}, which {earlier} governs as well"
                remedy = "narrow one of them with nodePoolSelector; the older one wins"
                yield place.finding("spec", problem, remedy, rule="config-conflict")


def _governs(config: SchedulingConfig, pool: NodePool) -> bool:
    ref, of_pool = config.spec.node_class_ref, pool.spec.template.spec.node_class_ref
    if (ref.group, ref.kind, ref.name) != (of_pool.group, of_pool.kind, of_pool.name):
        return False
    selector = config.spec.node_pool_selector
    return selector is None or selector.matches(pool.metadata.labels)
