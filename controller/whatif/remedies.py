"""What every reason means and what to do about it; also the page about them, for `docs/reference/reasons.md`.

`charpente explain` shows the remedy of the nearest reason; the page is printed by
`python -m controller.whatif.remedies`. Every code of the engine, of disruption and of `explain` is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from controller.disruption.reasons import BlockCode
from controller.scheduling import Reason, ReasonCode
from controller.whatif.facts import Fact

__all__ = ["REMEDIES", "Remedy", "page", "remedy_of"]


class Remedy(NamedTuple):
    """What a reason means, and what to do; nothing to do when that is empty."""

    meaning: str
    action: str = ""


REMEDIES: Final[Mapping[StrEnum, Remedy]] = {
    # Pods
    ReasonCode.DRA: Remedy(
        "The pod has resource claims, which are not planned for.",
        "Ask for devices as extended resources, or run the pod on nodes of another provisioner.",
    ),
    ReasonCode.INVALID_POD: Remedy(
        "The pod asks for something that no node can give.", "Mend the field that the reason names."
    ),
    ReasonCode.NO_POOLS: Remedy(
        "No NodePool can launch nodes now.",
        "Create a NodePool, or see with `charpente explain nodepool` what keeps yours from being Ready.",
    ),
    ReasonCode.POOL_UNUSABLE: Remedy(
        "The NodePool's own requirements leave no instance type.",
        "Widen the NodePool's requirements; `charpente lint` says which of them exclude every type.",
    ),
    ReasonCode.UNPLACED: Remedy(
        "The pod fits no node that exists and none that a NodePool could launch.",
        "Look at the reasons under it, pool by pool.",
    ),
    ReasonCode.TAINT: Remedy(
        "The pod does not tolerate a taint.",
        "Add the toleration to the pod, or offer a NodePool without the taint.",
    ),
    ReasonCode.REQUIREMENTS: Remedy(
        "What the pod demands of a node's labels contradicts what the NodePool allows.",
        "Change the pod's nodeSelector or node affinity, or the NodePool's requirements.",
    ),
    ReasonCode.UNKNOWN_LABEL: Remedy(
        "The pod demands a label that no node of the NodePool would have.",
        "Correct the key, or set the label in the NodePool's spec.template.metadata.labels.",
    ),
    ReasonCode.LIMITS: Remedy(
        "The NodePool has reached its limits.",
        "Raise spec.limits of the NodePool, or free what its nodes hold.",
    ),
    ReasonCode.REGISTRATION_PAUSED: Remedy(
        "Launches of the NodePool in a row never became nodes, so it is held back.",
        "Repair what keeps its nodes from joining: image, user data, network, access entry. A changed "
        "NodePool or node class is tried at once.",
    ),
    ReasonCode.SPOT_SHARE: Remedy(
        "The pod can only run on spot, of which its SchedulingConfig allows no more beside what there is.",
        "Raise spec.spot.maxShare, or let the pod or its NodePool use on-demand capacity.",
    ),
    ReasonCode.RESOURCES: Remedy(
        "No allowed instance type, or no existing node, leaves as much as the pod requests.",
        "Request less, or allow larger instance types in the NodePool's requirements.",
    ),
    ReasonCode.OFFERINGS: Remedy(
        "The types that fit are not on offer where and how the pod demands.",
        "Allow more zones or capacity types, or wait until capacity that was sold out is tried again.",
    ),
    ReasonCode.INSTANCE_TYPES: Remedy(
        "No single instance type meets everything at once.",
        "Relax one of the demands that the reason names.",
    ),
    ReasonCode.MIN_VALUES: Remedy(
        "Fewer distinct values remain than minValues demands.",
        "Lower minValues, widen the requirement, or set the policy for minValues to BestEffort.",
    ),
    ReasonCode.TOPOLOGY_SPREAD: Remedy(
        "Every place would break a topology spread constraint.",
        "Allow nodes in more of its domains, raise maxSkew, or make it ScheduleAnyway.",
    ),
    ReasonCode.POD_AFFINITY: Remedy(
        "No place is beside the pods that its affinity asks for.",
        "Check the selector and its namespaces; start the pods it wants to be beside.",
    ),
    ReasonCode.POD_ANTI_AFFINITY: Remedy(
        "Every place has a pod that it must keep away from, or that keeps it away.",
        "Allow more domains of the topology key, or prefer the anti-affinity instead of requiring it.",
    ),
    ReasonCode.HOST_PORT: Remedy(
        "The host port is taken.", "Drop the host port, or run fewer such pods on a node."
    ),
    ReasonCode.VOLUME: Remedy(
        "A volume of the pod cannot be used or is bound to places that do not fit.",
        "Look at the PersistentVolumeClaim and StorageClass that the reason names.",
    ),
    ReasonCode.VOLUME_LIMIT: Remedy(
        "The node can attach no more volumes.", "Spread pods with volumes over more nodes."
    ),
    ReasonCode.RESERVED: Remedy("The pod waits for reserved capacity that others of this round hold."),
    ReasonCode.TIMEOUT: Remedy("The time of the round was up; the pod is tried again in the next one."),
    ReasonCode.NODE: Remedy("A node that exists does not fit."),
    ReasonCode.ON_EXISTING_NODE: Remedy("The pod goes to a node that exists."),
    ReasonCode.ON_IN_FLIGHT_NODE: Remedy("The pod goes to a node that is on its way."),
    ReasonCode.ON_NEW_CLAIM: Remedy("The pod gets a new node."),
    Fact.RUNS: Remedy("The pod has its node."),
    Fact.ENDED: Remedy("The pod has ended."),
    Fact.BEING_DELETED: Remedy("The pod is going."),
    Fact.BOUND_TO_ITS_NODE: Remedy("A DaemonSet's or a static pod: it comes with its node."),
    Fact.NOMINATED: Remedy("The scheduler preempts other pods for it."),
    Fact.NOT_WAITING: Remedy(
        "Nodes are made only for pods that the scheduler has given up.",
        "Wait a moment; look at the pod's scheduling gates and its schedulerName.",
    ),
    # Nodes
    BlockCode.DISRUPTABLE: Remedy("The node may go now."),
    BlockCode.STAYS: Remedy("No method of disruption may touch the node now."),
    BlockCode.IN_COMMAND: Remedy("The node is being disrupted already."),
    BlockCode.UNMANAGED: Remedy("The node is not one of a NodePool."),
    BlockCode.NO_NODE: Remedy(
        "The instance has not joined yet.", "See the conditions of its NodeClaim if that takes minutes."
    ),
    BlockCode.NOT_INITIALIZED: Remedy(
        "The node is not initialized.",
        "See the condition Initialized of its NodeClaim: it waits for taints, resources or readiness.",
    ),
    BlockCode.MARKED_FOR_DELETION: Remedy("The node is going."),
    BlockCode.NOMINATED: Remedy("Pods that wait are expected on the node."),
    BlockCode.NODE_DO_NOT_DISRUPT: Remedy(
        "The node carries karpenter.sh/do-not-disrupt.", "Take the annotation away."
    ),
    BlockCode.NO_POOL_LABEL: Remedy("The node lost its label karpenter.sh/nodepool.", "Put the label back."),
    BlockCode.POOL_NOT_FOUND: Remedy("The node's NodePool is gone.", "Create the NodePool again."),
    BlockCode.POOL_WITHOUT_TYPES: Remedy(
        "The NodePool's instance types are not known.", "See the conditions of its node class."
    ),
    BlockCode.POD_DO_NOT_DISRUPT: Remedy(
        "A pod on the node carries karpenter.sh/do-not-disrupt.",
        "Take the annotation off the pod, or set terminationGracePeriod for drift to go ahead.",
    ),
    BlockCode.POD_DISRUPTION_BUDGET: Remedy(
        "A PodDisruptionBudget allows no eviction now.",
        "Let the workload get healthy, add replicas, or loosen the budget.",
    ),
    BlockCode.SEVERAL_BUDGETS: Remedy(
        "Two PodDisruptionBudgets select the pod, so the API server evicts it under none.",
        "Narrow the selectors until one budget selects the pod.",
    ),
    BlockCode.BUDGET: Remedy(
        "The NodePool's disruption budgets allow no more now.",
        "Wait, or raise spec.disruption.budgets; `charpente explain budget` shows the next 24 hours.",
    ),
    BlockCode.NOT_EMPTY: Remedy("Pods run on the node."),
    BlockCode.HEADROOM: Remedy(
        "The node is empty and kept for pods that are not there yet.",
        "Ask for less headroom in the SchedulingConfig, or for a smaller CapacityBuffer.",
    ),
    BlockCode.EMPTY: Remedy("The node is empty, which another method sees to."),
    BlockCode.STATIC: Remedy("The NodePool has a fixed number of nodes."),
    BlockCode.NOT_STATIC: Remedy("The NodePool has no fixed number of nodes."),
    BlockCode.NOT_DRIFTED: Remedy("The node is as its NodePool and node class say."),
    BlockCode.CONSOLIDATION_OFF: Remedy(
        "The NodePool has consolidateAfter: Never.", "Set spec.disruption.consolidateAfter."
    ),
    BlockCode.ONLY_WHEN_EMPTY: Remedy(
        "The NodePool consolidates empty nodes only.",
        "Set consolidationPolicy to WhenEmptyOrUnderutilized.",
    ),
    BlockCode.SETTLING: Remedy(
        "Pods came or went less than consolidateAfter ago.", "Wait, or shorten consolidateAfter."
    ),
    BlockCode.TYPE_UNKNOWN: Remedy("The node's instance type is no longer on offer; its price is unknown."),
    BlockCode.LABEL_MISSING: Remedy("The node lost a label that prices depend on.", "Put the label back."),
    BlockCode.PODS_DO_NOT_FIT: Remedy(
        "The node's pods fit nowhere else.", "Look at the reasons under it, pod by pod."
    ),
    BlockCode.CANDIDATE_DELETING: Remedy("The node is going already."),
    BlockCode.TOO_MANY_REPLACEMENTS: Remedy("Its pods would need more than one new node."),
    BlockCode.NOT_CHEAPER: Remedy(
        "Nothing cheaper would do.", "Allow more instance types, zones or capacity types."
    ),
    BlockCode.SPOT_TO_SPOT_OFF: Remedy(
        "Spot nodes are not replaced by cheaper spot nodes.",
        "Switch the feature gate SpotToSpotConsolidation on.",
    ),
    BlockCode.TOO_FEW_SPOT_TYPES: Remedy(
        "Too few cheaper spot types remain to be safe from interruption.", "Allow more instance types."
    ),
    BlockCode.SAVINGS_TOO_SMALL: Remedy(
        "The savings are under the SchedulingConfig's minSavings.", "Lower minSavings."
    ),
    BlockCode.BALANCED: Remedy("The savings are not worth the disruption, by the policy Balanced."),
    BlockCode.COOLDOWN: Remedy("The pool rests after its last command.", "Shorten the cooldown."),
    BlockCode.OSCILLATION: Remedy(
        "The pool went back and forth between the same types and rests, longer each time.",
        "Look at which workloads come and go in step; raise minSavings.",
    ),
    BlockCode.ROLLOUT: Remedy(
        "The SchedulingConfig's rollout holds the node back: delay, canary or a failure.",
        "See the conditions of the NodePool.",
    ),
    BlockCode.NODE_LIMIT: Remedy(
        "A replacement would exceed the limit of nodes.", "Raise spec.limits.nodes."
    ),
    BlockCode.SCALING_DOWN: Remedy("The static NodePool has more nodes than replicas and shrinks first."),
    BlockCode.CHURN: Remedy("Something changed while the command waited; it is judged again."),
    BlockCode.SIMULATION: Remedy("The world changed while the command waited; it is judged again."),
    BlockCode.TIMED_OUT: Remedy("A replacement did not come up in time.", "See its NodeClaim's events."),
    BlockCode.REPLACEMENT_GONE: Remedy(
        "A replacement went before it came up.", "See its NodeClaim's events."
    ),
    BlockCode.NOT_REACHED: Remedy("The pass ended before the node's turn; the next one begins there."),
    # Pools
    Fact.NODE_POOL: Remedy("What a NodePool may do now."),
    Fact.CONDITION: Remedy("A condition of the NodePool is not True.", "Mend what its message names."),
    Fact.NODES: Remedy("The NodePool's nodes and their price."),
    Fact.BUDGET: Remedy("How many nodes may be disrupted at a time, for one reason."),
    Fact.CALENDAR: Remedy("How that changes over the next 24 hours."),
}


def remedy_of(reason: Reason) -> str | None:
    """Return what to do about the nearest fact of the tree that something can be done about."""
    for child in reason.children:
        found = remedy_of(child)
        if found is not None:
            return found
    known = REMEDIES.get(reason.code)
    return known.action or None if known is not None else None


def page() -> str:
    """Return the page about every reason, in Markdown; each code has an anchor."""
    return "\n\n".join(["# Reasons", _INTRODUCTION, *_entries()]) + "\n"


_INTRODUCTION: Final = (
    "What `charpente explain`, `simulate` and events give as reasons, by the `code` in their JSON. "
    "Written by `python -m controller.whatif.remedies`."
)


def _entries() -> Iterator[str]:
    for code, remedy in sorted(REMEDIES.items(), key=lambda item: str(item[0])):
        words = re.sub(r"(?<!^)(?=[A-Z])", " ", str(code)).lower()
        action = f" **Remedy:** {remedy.action}" if remedy.action else ""
        yield f"## {code}\n\n*{words}*: {remedy.meaning}{action}"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - its job
