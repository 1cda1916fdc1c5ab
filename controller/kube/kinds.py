"""The API kinds that Charpente reads or writes, and their URL paths.

Called by the client and by whoever names a kind; holds constants only. The version of each kind is the
one that Kubernetes 1.26 to 1.36 serves.
"""

from __future__ import annotations

from typing import Final

import attrs

from framework.api import labels

__all__ = [
    "ALL_KINDS",
    "CAPACITYBUFFER",
    "CSINODE",
    "DAEMONSET",
    "DEPLOYMENT",
    "EC2NODECLASS",
    "EVENT",
    "LEASE",
    "LIMITRANGE",
    "NAMESPACE",
    "NODE",
    "NODECLAIM",
    "NODEOVERLAY",
    "NODEPOOL",
    "PDB",
    "PERSISTENTVOLUME",
    "PERSISTENTVOLUMECLAIM",
    "POD",
    "PODTEMPLATE",
    "REPLICASET",
    "SCHEDULINGCONFIG",
    "SERVICE",
    "STATEFULSET",
    "STORAGECLASS",
    "VOLUMEATTACHMENT",
    "Kind",
]


@attrs.frozen(kw_only=True)
class Kind:
    """One resource of the API: its names and whether its objects live in namespaces."""

    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Return group and version as objects spell them (`apps/v1`, `v1`)."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Return the name that RBAC rules use (`nodeclaims.karpenter.sh`, `pods`)."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the URL path of the collection, the object or one of its subresources."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(parts)

    def __str__(self) -> str:
        """Return the kind's name."""
        return self.kind


def _kind(group: str, version: str, kind: str, plural: str, *, namespaced: bool = False) -> Kind:
    return Kind(group=group, version=version, kind=kind, plural=plural, namespaced=namespaced)


NODEPOOL: Final = _kind(labels.GROUP, "v1", "NodePool", "nodepools")
NODECLAIM: Final = _kind(labels.GROUP, "v1", "NodeClaim", "nodeclaims")
SCHEDULINGCONFIG: Final = _kind(labels.GROUP, "v1", "SchedulingConfig", "schedulingconfigs")
NODEOVERLAY: Final = _kind(labels.GROUP, "v1alpha1", "NodeOverlay", "nodeoverlays")
EC2NODECLASS: Final = _kind(labels.AWS_GROUP, "v1", "EC2NodeClass", "ec2nodeclasses")
CAPACITYBUFFER: Final = _kind(
    "autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers", namespaced=True
)

POD: Final = _kind("", "v1", "Pod", "pods", namespaced=True)
PODTEMPLATE: Final = _kind("", "v1", "PodTemplate", "podtemplates", namespaced=True)
NODE: Final = _kind("", "v1", "Node", "nodes")
NAMESPACE: Final = _kind("", "v1", "Namespace", "namespaces")
SERVICE: Final = _kind("", "v1", "Service", "services", namespaced=True)
EVENT: Final = _kind("", "v1", "Event", "events", namespaced=True)
PERSISTENTVOLUME: Final = _kind("", "v1", "PersistentVolume", "persistentvolumes")
PERSISTENTVOLUMECLAIM: Final = _kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True
)
STORAGECLASS: Final = _kind("storage.k8s.io", "v1", "StorageClass", "storageclasses")
CSINODE: Final = _kind("storage.k8s.io", "v1", "CSINode", "csinodes")
VOLUMEATTACHMENT: Final = _kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments")
DAEMONSET: Final = _kind("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
DEPLOYMENT: Final = _kind("apps", "v1", "Deployment", "deployments", namespaced=True)
REPLICASET: Final = _kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
STATEFULSET: Final = _kind("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
LIMITRANGE: Final = _kind("", "v1", "LimitRange", "limitranges", namespaced=True)
PDB: Final = _kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", namespaced=True)
LEASE: Final = _kind("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)

ALL_KINDS: Final = (
    NODEPOOL,
    NODECLAIM,
    SCHEDULINGCONFIG,
    NODEOVERLAY,
    EC2NODECLASS,
    CAPACITYBUFFER,
    POD,
    PODTEMPLATE,
    NODE,
    NAMESPACE,
    SERVICE,
    EVENT,
    PERSISTENTVOLUME,
    PERSISTENTVOLUMECLAIM,
    STORAGECLASS,
    CSINODE,
    VOLUMEATTACHMENT,
    DAEMONSET,
    DEPLOYMENT,
    REPLICASET,
    STATEFULSET,
    LIMITRANGE,
    PDB,
    LEASE,
)
