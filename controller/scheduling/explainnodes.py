"""Why a pod fits none of the nodes that exist, in one line per kind of obstacle.

Called by the explanation pass; private to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from controller.scheduling.explainrules import rule_reason
from controller.scheduling.explaintypes import amount
from controller.scheduling.podclasses import PodClass, Variant
from controller.scheduling.podrules import AffinityRule, PodRule
from controller.scheduling.pods import is_active
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import EMPTY
from controller.scheduling.taints import tolerates

if TYPE_CHECKING:
    from controller.scheduling.run import Run

__all__ = ["NodeExplainer"]

_SHOWN_NODES: Final = 3


class NodeExplainer:
    """Finds the first obstacle of each node and tells how many nodes have it."""

    def __init__(self, run: Run) -> None:
        """Read the run."""
        self._run = run

    def reasons(self, cls: PodClass, variant: Variant) -> tuple[Reason, ...]:
        """Return one reason per kind of obstacle, the most frequent first."""
        nodes = self._run.nodes
        mates = self._mates(cls, variant)
        if mates:
            return tuple(mates)
        found: dict[tuple[ReasonCode, str], list[str]] = {}
        for row in range(nodes.size):
            found.setdefault(self._obstacle(row, cls, variant), []).append(nodes.nodes[row].name)
        ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        return tuple(
            Reason(code=code, text=f"{len(names)} existing nodes: {text}", nearest=_listed(names))
            for (code, text), names in ordered
        )

    def _obstacle(self, row: int, cls: PodClass, variant: Variant) -> tuple[ReasonCode, str]:
        """The first test that fails, in the order of §10."""
        nodes, rules = self._run.nodes, variant.rules[0]
        taint = tolerates(rules.tolerations, nodes.nodes[row].taints)
        if taint is not None:
            return ReasonCode.TAINT, f"did not tolerate taint {taint}"
        if cls.rules.volumes and not nodes.attaches(row, cls.rules.volumes):
            return ReasonCode.VOLUME_LIMIT, "no volume attach slot is free"
        if any(p.conflicts(taken) for p in variant.ports for taken in nodes.ports.get(row, ())):
            return ReasonCode.HOST_PORT, f"conflicting host port {', '.join(map(str, variant.ports))}"
        lacking = self.lacking(row, cls)
        if lacking:
            return ReasonCode.RESOURCES, f"lack {' and '.join(name for name, _ in lacking)}"
        if not nodes.matching(rules.requirements)[row]:
            return ReasonCode.REQUIREMENTS, f"labels do not satisfy {rules.requirements}"
        return _rules_obstacle(row, variant)

    def lacking(self, row: int, cls: PodClass) -> list[tuple[str, int]]:
        """Return the resources, with amounts, that the node lacks for one such pod."""
        room = self._run.nodes.room[row].tolist()
        pairs = zip(self._run.resources, cls.request, room, strict=True)
        return [(name, wanted - have) for name, wanted, have in pairs if wanted > have]

    def _mates(self, cls: PodClass, variant: Variant) -> list[Reason]:
        """Tell about the hosts that a required affinity leaves, and what each lacks."""
        wanted = [r for r in variant.host_rules if isinstance(r, AffinityRule) and not r.starts_anywhere]
        reasons = []
        for rule in wanted:
            for row in range(self._run.nodes.size):
                if rule.counter.node_counts[row]:
                    reasons.append(self._mate(row, rule, cls, variant))
        return reasons

    def _mate(self, row: int, rule: PodRule, cls: PodClass, variant: Variant) -> Reason:
        node = self._run.nodes.nodes[row]
        key = rule.counter.key
        mates = sorted(p.key for p in node.pods if is_active(p) and key.selects(p.namespace, p.labels))
        lacking = self.lacking(row, cls)
        if lacking:
            what = "lacks " + " and ".join(amount(name, short) for name, short in lacking)
        else:
            what = self._obstacle(row, cls, variant)[1]
        return Reason(
            code=ReasonCode.POD_AFFINITY,
            text=f"must run on the host of {_listed(mates)}: node {node.name}, which {what}",
            obj=f"Node/{node.name}",
        )


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN_NODES
    return ", ".join(names[:_SHOWN_NODES]) + (f" and {rest} others" if rest > 0 else "")


def _rules_obstacle(row: int, variant: Variant) -> tuple[ReasonCode, str]:
    """Return the rule over host names that refuses the row, else that some rule about other pods does."""
    for rule in variant.host_rules:
        if not rule.host(int(rule.counter.node_counts[row])):
            reason = rule_reason(rule, None, EMPTY)
            return ReasonCode(reason.code), reason.text
    kinds = sorted({rule_reason(rule, None, EMPTY).text for rule in variant.domain_rules})
    return ReasonCode.NODE, "; ".join(kinds) or "rules about other pods forbid it"
