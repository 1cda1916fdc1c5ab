"""Which pending pods can be decided at all (spec core/scheduling §3, §13.4).

Called at the start of a run. A pod that fails is reported and takes no further part; one that asked
to stay off managed nodes is left out silently.
"""

from __future__ import annotations

from controller.scheduling.plan import Options
from controller.scheduling.pods import Pod
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirements
from controller.scheduling.volumes import VolumeIndex
from framework.api import labels
from framework.api.requirement_spec import Operator

__all__ = ["pod_problem", "stays_off_managed_nodes"]

_RESTRICTED = (labels.GROUP, labels.AWS_GROUP)


def stays_off_managed_nodes(pod: Pod) -> bool:
    """Tell whether the pod requires that its node belongs to no pool."""
    terms = (pod.node_selector, *pod.required_terms)
    return any(
        (pool := term.get(labels.NODEPOOL)) is not None and pool.operator is Operator.DOES_NOT_EXIST
        for term in terms
    )


def pod_problem(pod: Pod, volumes: VolumeIndex, options: Options) -> Reason | None:
    """Return why the pod cannot be decided, None when it can. Only pending pods are judged."""
    if pod.resource_claims and options.ignore_dra:
        text = "dynamic resource allocation is not supported: the pod uses resource claims"
        return Reason(code=ReasonCode.DRA, text=text, obj=f"Pod/{pod.key}", field="spec.resourceClaims")
    if pod.node_name:
        return None
    if pod.problem is not None:
        return Reason(code=ReasonCode.INVALID_POD, text=pod.problem, obj=f"Pod/{pod.key}", field="spec")
    for term in (pod.node_selector, *pod.required_terms):
        if (key := _restricted_key(term, options.well_known)) is not None:
            text = f"label {key} is restricted; pods may not require it"
            return Reason(
                code=ReasonCode.INVALID_POD,
                text=text,
                obj=f"Pod/{pod.key}",
                field="spec.affinity.nodeAffinity",
            )
    for claim in pod.volume_claims:
        problem = volumes.problem(f"{pod.namespace}/{claim}")
        if problem is not None:
            return Reason(
                code=ReasonCode.VOLUME, text=problem, obj=f"PersistentVolumeClaim/{pod.namespace}/{claim}"
            )
    return None


def _restricted_key(term: Requirements, well_known: frozenset[str]) -> str | None:
    for key in term:
        domain = key.partition("/")[0]
        restricted = any(domain == name or domain.endswith(f".{name}") for name in _RESTRICTED)
        if restricted and key not in well_known:
            return key
    return None
