"""What the controller may do in the cluster.

Called by `framework.components.rbac`. Owns the rules (spec aws/iam-and-bootstrap
section 7.1, core/observability section 8); pure. Grants nothing on Secrets and
nothing on ConfigMaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from framework.api import labels

READ = ("get", "list", "watch")
LEASE = "karpenter-leader-election"


@attrs.frozen(kw_only=True)
class Rule:
    """One rule of a role."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, list[str]]:
        """The rule as it stands in a manifest."""
        wire = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return {**wire, "resourceNames": list(self.names)} if self.names else wire


def _with_status(*resources: str) -> tuple[str, ...]:
    return tuple(name for resource in resources for name in (resource, f"{resource}/status"))


CORE_READ: Sequence[Rule] = (
    Rule(
        group=labels.GROUP,
        resources=_with_status("nodepools", "nodeclaims", "nodeoverlays", "schedulingconfigs"),
        verbs=READ,
    ),
    Rule(
        group="",
        resources=(
            "pods",
            "podtemplates",
            "nodes",
            "persistentvolumes",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "namespaces",
            "events",
            "limitranges",
        ),
        verbs=READ,
    ),
    Rule(group="storage.k8s.io", resources=("storageclasses", "csinodes", "volumeattachments"), verbs=READ),
    Rule(group="apps", resources=("daemonsets", "deployments", "replicasets", "statefulsets"), verbs=READ),
    Rule(group="policy", resources=("poddisruptionbudgets",), verbs=READ),
    Rule(group="autoscaling.x-k8s.io", resources=_with_status("capacitybuffers"), verbs=READ),
)

CORE_WRITE: Sequence[Rule] = (
    Rule(
        group=labels.GROUP,
        resources=_with_status("nodeclaims"),
        verbs=("create", "delete", "update", "patch"),
    ),
    Rule(
        group=labels.GROUP,
        resources=(*_with_status("nodepools"), "nodeoverlays/status", "schedulingconfigs/status"),
        verbs=("update", "patch"),
    ),
    Rule(group="autoscaling.x-k8s.io", resources=("capacitybuffers/status",), verbs=("update", "patch")),
    Rule(group="", resources=("events",), verbs=("create", "patch")),
    Rule(group="", resources=("nodes",), verbs=("patch", "delete", "update")),
    Rule(group="", resources=("pods/eviction",), verbs=("create",)),
    Rule(group="", resources=("pods",), verbs=("delete",)),
)

AWS: Sequence[Rule] = (
    Rule(group=labels.AWS_GROUP, resources=_with_status("ec2nodeclasses"), verbs=READ),
    Rule(group=labels.AWS_GROUP, resources=_with_status("ec2nodeclasses"), verbs=("patch", "update")),
)

ADMINISTRATORS: Sequence[Rule] = (
    Rule(
        group=labels.GROUP,
        resources=_with_status("nodepools", "nodeclaims", "schedulingconfigs"),
        verbs=(*READ, "create", "delete", "patch"),
    ),
    Rule(
        group=labels.AWS_GROUP,
        resources=("ec2nodeclasses",),
        verbs=(*READ, "create", "delete", "patch"),
    ),
)
"""What the cluster's role `admin` gets on top."""

LEASES: Sequence[Rule] = (
    Rule(group="coordination.k8s.io", resources=("leases",), verbs=("get", "watch")),
    Rule(group="coordination.k8s.io", resources=("leases",), verbs=("create",)),
    Rule(group="coordination.k8s.io", resources=("leases",), verbs=("patch", "update"), names=(LEASE,)),
)

CLUSTER_DNS: Sequence[Rule] = (Rule(group="", resources=("services",), verbs=("get",), names=("kube-dns",)),)
