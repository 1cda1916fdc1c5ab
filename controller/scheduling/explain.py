"""The second, exact pass: why a pod found no place, per pool and on the nodes that exist.

Runs only for pods that failed, after the solve, on the state it ended in; reads and changes nothing.
Judges the pod's hard rules, since preferences were dropped before it failed. Private to the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from controller.scheduling.catalog import BoolColumn
from controller.scheduling.claimshapes import ClaimShape
from controller.scheduling.explainnodes import NodeExplainer
from controller.scheduling.explainrules import rule_reason
from controller.scheduling.explaintypes import type_reason
from controller.scheduling.limits import Ledger
from controller.scheduling.openclaims import OpenClaim
from controller.scheduling.podclasses import PodClass, Variant
from controller.scheduling.pods import Pod
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.taints import tolerates
from controller.scheduling.templates import Template, template_requirements
from framework.api import labels
from framework.api.quantity import format_resources
from framework.api.requirement_spec import Operator
from framework.api.schedulingconfig import MinValuesPolicy

if TYPE_CHECKING:
    from controller.scheduling.run import Run

__all__ = ["Explainer"]


class Explainer:
    """Finds the first filter that fails per pool, with the nearest miss."""

    def __init__(self, run: Run) -> None:
        """Read the run."""
        self._run = run
        self._nodes = NodeExplainer(run)
        self._known: dict[PodClass, tuple[Reason, ...]] = {}

    def too_few_values(self, claim: OpenClaim) -> Reason:
        """Return why a claim was dropped when its types were cut to the most that it may name."""
        keys = ", ".join(sorted(claim.shape.min_values))
        return Reason(
            code=ReasonCode.MIN_VALUES,
            text=f"NodePool couldn't meet minValues requirements for {keys}",
            obj=f"NodePool/{claim.shape.template.name}",
        )

    def why_unplaced(self, pod: Pod, cls: PodClass) -> Reason:
        """Return the tree of reasons for one pod; pods of a class share its branches."""
        children = self._known.get(cls)
        if children is None:
            children = self._known[cls] = self._children(cls)
        return Reason(code=ReasonCode.UNPLACED, text="fits no node", obj=f"Pod/{pod.key}", children=children)

    def _children(self, cls: PodClass) -> tuple[Reason, ...]:
        run = self._run
        variant = run.classing.variants(cls.rules, soft_taints=run.pools.has_soft_taints)[-1]
        reasons: list[Reason] = []
        if (volumes := self._volume_conflict(cls)) is not None:
            return (volumes,)
        if (unknown := self._unknown_label(variant)) is not None:
            return (unknown,)
        reasons += [self._pool_reason(cls, variant, template) for template in run.pools.templates]
        reasons += [run.pools.problems[name] for name in sorted(run.pools.problems)]
        if not reasons:
            reasons.append(Reason(code=ReasonCode.NO_POOLS, text="no dynamic nodepools found"))
        return (*_merged(reasons), *self._nodes.reasons(cls, variant))

    # One pool

    def _pool_reason(self, cls: PodClass, variant: Variant, template: Template) -> Reason:
        reason = self._first_failure(cls, variant, template)
        return attrs.evolve(reason, obj=reason.obj or f"NodePool/{template.name}")

    def _first_failure(self, cls: PodClass, variant: Variant, template: Template) -> Reason:
        rules = variant.rules[0]
        taint = tolerates(rules.tolerations, template.taints)
        if taint is not None:
            text = f"did not tolerate taint {taint}"
            return Reason(code=ReasonCode.TAINT, text=text, field="spec.tolerations")
        if (mismatch := self._mismatch(rules.requirements, template)) is not None:
            return mismatch
        allowed = template.allowed()
        if (limit := self._limit(cls, variant, template)) is not None:
            return limit
        shape = self._run.shapes.intern(template, template.requirements, allowed)
        if shape is not None and (steered := self._steered(cls, variant, shape)) is not None:
            return steered
        moved = None if shape is None else rules.move(shape, self._run.shapes)
        if moved is None:
            return type_reason(self._run.resources, template, rules.requirements, cls.request)
        if (topology := self._topology(moved, variant)) is not None:
            return topology
        if not moved.holds(list(cls.request)):
            return type_reason(self._run.resources, template, rules.requirements, cls.request)
        strict = template.min_values_policy is MinValuesPolicy.STRICT
        if strict and (values := self._min_values(moved, cls)) is not None:
            return values
        return type_reason(self._run.resources, template, self._narrowest(moved, variant), cls.request)

    def _mismatch(self, wanted: Requirements, template: Template) -> Reason | None:
        own = wanted.get(labels.HOSTNAME)
        if own is not None and (not own.complement or own.gte is not None or own.lte is not None):
            text = f"{own}: a new node has a name of its own"
            return Reason(code=ReasonCode.REQUIREMENTS, text=text, field="spec.affinity.nodeAffinity")
        visible = wanted.without(labels.HOSTNAME)
        why = template.requirements.why_not(visible, self._run.problem.options.well_known)
        if why is None:
            return None
        config, of_pool = template.config, template_requirements(template.pool)
        known = self._run.problem.options.well_known
        by_config = config is not None and of_pool.why_not(visible, known) is None
        return Reason(
            code=ReasonCode.REQUIREMENTS,
            text=f"incompatible requirements, {why}",
            obj=f"SchedulingConfig/{config.name}" if config is not None and by_config else None,
            field="spec.requirements" if by_config else "spec.affinity.nodeAffinity",
        )

    def _limit(self, cls: PodClass, variant: Variant, template: Template) -> Reason | None:
        """The limits, when types that they rule out would have held the pod."""
        for ledger in template.ledgers:
            if template.sound.any() and not ledger.restrict(template.capacity, template.sound).any():
                blocking = [
                    name
                    for name in ledger.resources
                    if not (template.sound & (template.capacity[name] <= ledger.remaining[name])).any()
                ] or list(ledger.resources)
                return self._limit_reason(ledger, blocking)
        everything = self._run.shapes.intern(template, template.requirements, template.sound)
        moved = None if everything is None else variant.rules[0].move(everything, self._run.shapes)
        if moved is None:
            return None
        fitting = moved.types_holding(list(cls.request))
        for ledger in template.ledgers:
            if fitting.any() and not ledger.restrict(template.capacity, fitting).any():
                blocking = [
                    name
                    for name in ledger.resources
                    if not (fitting & (template.capacity[name] <= ledger.remaining[name])).any()
                ] or list(ledger.resources)
                return self._limit_reason(ledger, blocking)
        return None

    def _steered(self, cls: PodClass, variant: Variant, start: ClaimShape) -> Reason | None:
        """The share of spot, when it alone keeps the pod from a new claim."""
        steering = start.template.steering
        if steering is None or not self._holds(cls, variant, start):
            return None
        openings = self._run.on_claims.openings(start, variant)
        if any(self._holds(cls, variant, each) for each in openings):
            return None
        return steering.refusal()

    def _holds(self, cls: PodClass, variant: Variant, start: ClaimShape) -> bool:
        moved = variant.rules[0].move(start, self._run.shapes)
        return moved is not None and moved.holds(list(cls.request))

    def _limit_reason(self, ledger: Ledger, names: list[str]) -> Reason:
        if ledger.paused is not None:
            code, field = ReasonCode.REGISTRATION_PAUSED, "status.conditions"
            return Reason(code=code, text=ledger.paused, obj=ledger.owner, field=field)
        parts = []
        for name in names:
            ceiling = format_resources({name: ledger.limits[name]})[name]
            left = format_resources({name: max(0, ledger.remaining[name])})[name]
            parts.append(f"{name} limit {ceiling}, {left} left")
        return Reason(
            code=ReasonCode.LIMITS,
            text=f"all available instance types exceed limits ({'; '.join(parts)})",
            obj=ledger.owner,
            field="spec.limits",
        )

    def _min_values(self, shape: ClaimShape, cls: PodClass) -> Reason | None:
        types: BoolColumn = shape.types_holding(list(cls.request))
        table = shape.template.table
        missing = {
            key: (table.distinct_values(key, types), wanted)
            for key, wanted in shape.min_values.items()
            if table.distinct_values(key, types) < wanted
        }
        if not missing:
            return None
        listed = "; ".join(f"{key} has {have} of {wanted} values" for key, (have, wanted) in missing.items())
        return Reason(
            code=ReasonCode.MIN_VALUES,
            text=f"minValues requirement is not met for label(s) {', '.join(missing)} ({listed})",
            field="spec.template.spec.requirements",
        )

    def _topology(self, shape: ClaimShape, variant: Variant) -> Reason | None:
        for rule in variant.host_rules:
            if not rule.host(0):
                return rule_reason(rule, None, variant.strict)
        for rule in variant.domain_rules:
            key = rule.counter.key.topology_key
            if rule.choices(shape.requirements.get(key), variant.strict.get(key)) == ():
                return rule_reason(rule, shape.requirements.get(key), variant.strict)
        return None

    def _narrowest(self, shape: ClaimShape, variant: Variant) -> Requirements:
        requirements = shape.requirements
        for rule in variant.domain_rules:
            key = rule.counter.key.topology_key
            choices = rule.choices(requirements.get(key), variant.strict.get(key))
            if choices:
                requirements = requirements.add(Requirement.new(key, Operator.IN, choices[0]))
        return requirements

    # Facts about the pod alone

    def _unknown_label(self, variant: Variant) -> Reason | None:
        """A label that the pod needs and no pool defines, with the nearest that one does (§5)."""
        templates = self._run.pools.templates
        if not templates:
            return None
        defined = {key for template in templates for key in template.requirements}
        known = defined | self._run.problem.options.well_known | {labels.HOSTNAME}
        on_nodes = {key for node in self._run.nodes.nodes for key in node.labels}
        for key, requirement in sorted(variant.rules[0].requirements.items()):
            if key in known or key in on_nodes or requirement.is_negative:
                continue
            everything = Requirements.of(*(Requirement.new(k, Operator.EXISTS) for k in sorted(known)))
            return Reason(
                code=ReasonCode.UNKNOWN_LABEL,
                text=f"label {key} has no known values: no NodePool defines it{everything.guess(key)}",
                field="spec.affinity.nodeAffinity",
            )
        return None

    def _volume_conflict(self, cls: PodClass) -> Reason | None:
        """Volumes that cannot be used on one node together, each with where it is (§13.4)."""
        volumes = self._run.problem.snapshot.volumes
        named = [
            (claim, volumes.alternatives(f"{cls.rules.sample.namespace}/{claim}"))
            for claim in cls.rules.constraints.volume_claims
        ]
        bound = [(claim, terms) for claim, terms in named if terms]
        together: list[Requirements] = list(bound[0][1]) if bound else []
        for _, terms in bound[1:]:
            together = [a.union(b) for a in together for b in terms if a.intersects(b)]
        if not bound or together:
            return None
        children = tuple(
            Reason(
                code=ReasonCode.VOLUME,
                text=f"needs {' or '.join(str(term) for term in terms)}",
                obj=f"PersistentVolumeClaim/{cls.rules.sample.namespace}/{claim}",
            )
            for claim, terms in bound
        )
        return Reason(
            code=ReasonCode.VOLUME,
            text="incompatible volume requirements: no node can use all of its volumes",
            field="spec.volumes",
            children=children,
        )


def _merged(reasons: list[Reason]) -> list[Reason]:
    """Say a thing once that several objects say alike."""
    merged: dict[tuple[str, str | None], list[Reason]] = {}
    for reason in reasons:
        merged.setdefault((reason.text, reason.nearest), []).append(reason)
    return [
        attrs.evolve(alike[0], obj=", ".join(dict.fromkeys(reason.obj or "" for reason in alike)))
        for alike in merged.values()
    ]
