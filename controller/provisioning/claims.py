"""Makes NodeClaims of plans (spec core/scheduling §19, core/api §4).

Called by the provisioner, by disruption for replacements and by static pools. Owns the shape of a new
claim, its name, and the last look at the pool's limits; planning is over when this is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final

import structlog

from controller.cluster import Mirror, class_label
from controller.kube import AlreadyExists, Client, WireObject, kinds
from controller.observability import Metrics
from controller.observability.logs import ref
from controller.scheduling import PlannedClaim, Requirements
from controller.scheduling.resources import add
from framework.api import (
    NODEPOOL_HASH_VERSION,
    CharpenteError,
    NodeClaim,
    NodeClaimResources,
    NodeClaimSpec,
    NodePool,
    ObjectMeta,
    OwnerReference,
    Quantity,
    RequirementSpec,
    SchedulingConfig,
    Taint,
    TaintEffect,
    format_resources,
    labels,
    nodepool_document,
    parse_quantity,
    parse_resources,
)

__all__ = ["ClaimWriter", "LimitsExceeded", "RequirementsExclude", "to_nodeclaim"]

_log: Final = structlog.get_logger("controller")
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that make no words; what the API server uses for generated names."""
_SUFFIX: Final = 5
_LONGEST_PREFIX: Final = 57
_NAME_TRIES: Final = 8
_SHOWN_TYPES: Final = 5


class LimitsExceeded(CharpenteError):
    """The pool already uses more than its limits allow, so nothing is created."""


class RequirementsExclude(CharpenteError):
    """A pool and its SchedulingConfig allow nothing together, so nothing is created."""


def to_nodeclaim(planned: PlannedClaim, pool: NodePool) -> NodeClaim:
    """Return the claim of a plan, without a name."""
    requests = {name: parse_quantity(text) for name, text in format_resources(planned.requests).items()}
    annotations = {
        **planned.annotations,
        labels.MIN_VALUES_RELAXED: "true" if planned.min_values_relaxed else "false",
    }
    spec = _spec(
        pool,
        NodeClaimSpec(
            requirements=planned.requirements.to_specs(),
            resources=NodeClaimResources(requests=requests),
            taints=tuple(_taint(t.key, t.value, t.effect) for t in planned.taints),
            startup_taints=tuple(_taint(t.key, t.value, t.effect) for t in planned.startup_taints),
        ),
    )
    return NodeClaim(metadata=_metadata(pool, planned.labels, annotations), spec=spec)


def _static_nodeclaim(pool: NodePool, config: SchedulingConfig | None) -> NodeClaim:
    """Return the claim of a static pool, straight from its template (spec core/scheduling §17).

    Raises RequirementsExclude when nothing satisfies both the pool and its SchedulingConfig.
    """
    template = pool.spec.template
    spec = _spec(
        pool,
        NodeClaimSpec(
            requirements=_static_requirements(pool, config),
            taints=template.spec.taints,
            startup_taints=template.spec.startup_taints,
        ),
    )
    return NodeClaim(
        metadata=_metadata(pool, template.metadata.labels, template.metadata.annotations), spec=spec
    )


def _static_requirements(pool: NodePool, config: SchedulingConfig | None) -> tuple[RequirementSpec, ...]:
    own = pool.spec.template.spec.requirements
    if config is None or not config.spec.requirements:
        return own
    mine, theirs = Requirements.from_specs(own), Requirements.from_specs(config.spec.requirements)
    if not mine.intersects(theirs):
        raise RequirementsExclude(
            f"NodePool/{pool.name}: its requirements and those of SchedulingConfig {config.name} exclude "
            "each other; widen one of them"
        )
    return mine.union(theirs).to_specs()


def _spec(pool: NodePool, spec: NodeClaimSpec) -> NodeClaimSpec:
    template = pool.spec.template.spec
    return NodeClaimSpec(
        requirements=spec.requirements,
        resources=spec.resources,
        taints=spec.taints,
        startup_taints=spec.startup_taints,
        node_class_ref=template.node_class_ref,
        expire_after=template.expire_after,
        termination_grace_period=template.termination_grace_period,
    )


def _metadata(pool: NodePool, own: Mapping[str, str], annotations: Mapping[str, str]) -> ObjectMeta:
    reference, document = pool.spec.template.spec.node_class_ref, nodepool_document(pool)
    return ObjectMeta(
        labels={
            **own,
            labels.NODEPOOL: pool.name,
            class_label(reference.group, reference.kind): reference.name,
        },
        annotations={
            **pool.spec.template.metadata.annotations,
            **annotations,
            labels.NODEPOOL_HASH: document.hash,
            labels.NODEPOOL_HASH_DOCUMENT: document.text,
            labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION,
        },
        finalizers=(labels.TERMINATION_FINALIZER,),
        owner_references=(
            OwnerReference(
                api_version=pool.api_version,
                kind=pool.kind,
                name=pool.name,
                uid=pool.metadata.uid,
                block_owner_deletion=True,
            ),
        ),
    )


def _taint(key: str, value: str, effect: str) -> Taint:
    return Taint(key=key, value=value or None, effect=TaintEffect(effect))


class ClaimWriter:
    """Creates claims and shows them to the mirror at once."""

    def __init__(self, client: Client, mirror: Mirror, *, metrics: Metrics, random: Random) -> None:
        """Keep the arguments; `random` makes the ends of names."""
        self._client = client
        self._mirror = mirror
        self._metrics = metrics
        self._random = random

    async def launch(self, planned: PlannedClaim, pool: NodePool, *, reason: str) -> str:
        """Create the claim of a plan and return its name.

        `reason` is `provisioned` or a disruption reason in lower case. Raises LimitsExceeded, KubeError.
        """
        name = await self._create(to_nodeclaim(planned, pool), pool)
        relaxed = "true" if planned.min_values_relaxed else "false"
        self._metrics.claims.created.labels(
            reason=reason, nodepool=pool.name, min_values_relaxed=relaxed
        ).inc()
        _log.info(
            "created nodeclaim",
            NodePool=ref(pool.name),
            NodeClaim=ref(name),
            requests=format_resources(planned.requests),
            **{"instance-types": _shown(planned.instance_types)},
        )
        return name

    async def launch_static(self, pool: NodePool, *, reason: str) -> str:
        """Create a claim from a static pool's template and return its name.

        Raises LimitsExceeded, RequirementsExclude, KubeError.
        """
        name = await self._create(_static_nodeclaim(pool, self._mirror.config_of(pool)), pool)
        self._metrics.claims.created.labels(
            reason=reason, nodepool=pool.name, min_values_relaxed="false"
        ).inc()
        _log.info("created nodeclaim", NodePool=ref(pool.name), NodeClaim=ref(name))
        return name

    async def _create(self, claim: NodeClaim, pool: NodePool) -> str:
        self._check_limits(pool)
        for _ in range(_NAME_TRIES):
            suffix = "".join(self._random.choice(_ALPHABET) for _ in range(_SUFFIX))
            name = f"{pool.name[:_LONGEST_PREFIX]}-{suffix}"
            try:
                created = await self._client.create(kinds.NODECLAIM, _named(claim, name))
            except AlreadyExists:
                continue
            self._mirror.apply(kinds.NODECLAIM, created)
            return name
        raise AlreadyExists(
            "create nodeclaims.karpenter.sh", f"{_NAME_TRIES} names of {pool.name} were taken"
        )

    def _check_limits(self, pool: NodePool) -> None:
        """Look at what is used now: somebody else may have grown it since the plan was made."""
        self._check(f"NodePool/{pool.name}", pool.spec.limits, (pool,))
        config = self._mirror.config_of(pool)
        if config is not None:
            governed = self._mirror.governed_by(config)
            self._check(f"SchedulingConfig/{config.name}", config.spec.limits, governed)

    def _check(self, owner: str, given: Mapping[str, Quantity], pools: Iterable[NodePool]) -> None:
        limits = parse_resources(given)
        used = add(*(self._mirror.usage(pool.name) for pool in pools)) if limits else {}
        over = sorted(name for name, limit in limits.items() if used.get(name, 0) > limit)
        if over:
            raise LimitsExceeded(f"{owner}: usage of {', '.join(over)} exceeds the limit")


def _named(claim: NodeClaim, name: str) -> WireObject:
    wire = claim.to_wire()
    wire["metadata"]["name"] = name
    return wire


def _shown(types: tuple[str, ...]) -> str:
    more = len(types) - _SHOWN_TYPES
    return ", ".join(types[:_SHOWN_TYPES]) + (f" and {more} other(s)" if more > 0 else "")
