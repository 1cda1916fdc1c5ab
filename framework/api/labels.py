"""Every label, annotation, taint and finalizer key that Charpente reads or writes.

Used by all packages; no other module spells these strings. Holds constants only.
Spec: core/api §8, aws/instances §2.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "karpenter.sh"
AWS_GROUP: Final = "karpenter.k8s.aws"

# Well-known labels of Kubernetes
HOSTNAME: Final = "kubernetes.io/hostname"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
EXCLUDE_FROM_LOAD_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

# Labels of the core
NODEPOOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"

# Labels of the AWS provider
EC2NODECLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
EBS_ZONE: Final = "topology.ebs.csi.aws.com/zone"
CAPACITY_RESERVATION_ID: Final = "karpenter.k8s.aws/capacity-reservation-id"
CAPACITY_RESERVATION_TYPE: Final = "karpenter.k8s.aws/capacity-reservation-type"
INSTANCE_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
INSTANCE_GENERATION: Final = "karpenter.k8s.aws/instance-generation"
INSTANCE_FAMILY: Final = "karpenter.k8s.aws/instance-family"
INSTANCE_SIZE: Final = "karpenter.k8s.aws/instance-size"
INSTANCE_CAPABILITY_FLEX: Final = "karpenter.k8s.aws/instance-capability-flex"
INSTANCE_CPU: Final = "karpenter.k8s.aws/instance-cpu"
INSTANCE_CPU_MANUFACTURER: Final = "karpenter.k8s.aws/instance-cpu-manufacturer"
INSTANCE_CPU_CLOCK_MHZ: Final = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
INSTANCE_MEMORY: Final = "karpenter.k8s.aws/instance-memory"
INSTANCE_EBS_BANDWIDTH: Final = "karpenter.k8s.aws/instance-ebs-bandwidth"
INSTANCE_NETWORK_BANDWIDTH: Final = "karpenter.k8s.aws/instance-network-bandwidth"
INSTANCE_LOCAL_NVME: Final = "karpenter.k8s.aws/instance-local-nvme"
INSTANCE_GPU_NAME: Final = "karpenter.k8s.aws/instance-gpu-name"
INSTANCE_GPU_MANUFACTURER: Final = "karpenter.k8s.aws/instance-gpu-manufacturer"
INSTANCE_GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
INSTANCE_GPU_MEMORY: Final = "karpenter.k8s.aws/instance-gpu-memory"
INSTANCE_ACCELERATOR_NAME: Final = "karpenter.k8s.aws/instance-accelerator-name"
INSTANCE_ACCELERATOR_MANUFACTURER: Final = "karpenter.k8s.aws/instance-accelerator-manufacturer"
INSTANCE_ACCELERATOR_COUNT: Final = "karpenter.k8s.aws/instance-accelerator-count"
INSTANCE_HYPERVISOR: Final = "karpenter.k8s.aws/instance-hypervisor"
INSTANCE_ENCRYPTION_IN_TRANSIT: Final = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
INSTANCE_TENANCY: Final = "karpenter.k8s.aws/instance-tenancy"

# Annotations
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
NODEPOOL_HASH_DOCUMENT: Final = "karpenter.sh/nodepool-hash-document"
NODECLASS_HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
NODECLASS_HASH_VERSION: Final = "karpenter.k8s.aws/ec2nodeclass-hash-version"
NODECLASS_HASH_DOCUMENT: Final = "karpenter.k8s.aws/ec2nodeclass-hash-document"
INSTANCE_PROFILE_NAME: Final = "karpenter.k8s.aws/instance-profile-name"
TAGGED: Final = "karpenter.k8s.aws/tagged"
CLUSTER_NAME_TAGGED: Final = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
PRICE_OVERLAY_APPLIED: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY_APPLIED: Final = "karpenter.sh/capacity-overlay-applied"
HEADROOM: Final = "karpenter.sh/headroom"
BUFFER_POD: Final = "karpenter.sh/capacity-buffer-fake-pod"
BUFFER_NAME: Final = "karpenter.sh/capacity-buffer-name"
BUFFER_NAMESPACE: Final = "karpenter.sh/capacity-buffer-namespace"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
PV_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"

# Finalizers
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
NODECLASS_FINALIZER: Final = "karpenter.k8s.aws/termination"

# Taint keys
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"

# AWS tag keys
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
EKS_CLUSTER_NAME_TAG: Final = "eks:eks-cluster-name"
NODECLAIM_TAG: Final = "karpenter.sh/nodeclaim"
LAUNCH_TAG: Final = "karpenter.k8s.aws/launch"
CLUSTER_OWNED_TAG_PREFIX: Final = "kubernetes.io/cluster/"

CAPACITY_TYPES: Final = ("on-demand", "spot", "reserved")

WELL_KNOWN: Final[frozenset[str]] = frozenset(
    {NODEPOOL, CAPACITY_TYPE, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, WINDOWS_BUILD}
)
"""Labels a pod may require although no pool mentions them (core; spec core/api §8.1)."""

AWS_WELL_KNOWN: Final[frozenset[str]] = frozenset(
    {
        ZONE_ID,
        CAPACITY_RESERVATION_ID,
        CAPACITY_RESERVATION_TYPE,
        EC2NODECLASS,
        INSTANCE_CATEGORY,
        INSTANCE_GENERATION,
        INSTANCE_FAMILY,
        INSTANCE_SIZE,
        INSTANCE_CAPABILITY_FLEX,
        INSTANCE_CPU,
        INSTANCE_CPU_MANUFACTURER,
        INSTANCE_CPU_CLOCK_MHZ,
        INSTANCE_MEMORY,
        INSTANCE_EBS_BANDWIDTH,
        INSTANCE_NETWORK_BANDWIDTH,
        INSTANCE_LOCAL_NVME,
        INSTANCE_GPU_NAME,
        INSTANCE_GPU_MANUFACTURER,
        INSTANCE_GPU_COUNT,
        INSTANCE_GPU_MEMORY,
        INSTANCE_ACCELERATOR_NAME,
        INSTANCE_ACCELERATOR_MANUFACTURER,
        INSTANCE_ACCELERATOR_COUNT,
        INSTANCE_HYPERVISOR,
        INSTANCE_ENCRYPTION_IN_TRANSIT,
        INSTANCE_TENANCY,
    }
)
"""Labels that the AWS provider defines on every instance type (spec aws/instances §2)."""

RESTRICTED_DOMAINS: Final = (GROUP, AWS_GROUP)
"""Domains, with all below them, in which users may only use the well-known labels (core/api §9)."""

KNOWN_VALUES: Final[dict[str, tuple[str, ...]]] = {
    CAPACITY_TYPE: CAPACITY_TYPES,
    INSTANCE_TENANCY: ("default", "dedicated"),
}
"""Labels that have a closed set of values."""

NORMALISED: Final[dict[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    EBS_ZONE: ZONE,
}
"""Old or driver-specific keys and the key they stand for (spec core/api §9)."""
