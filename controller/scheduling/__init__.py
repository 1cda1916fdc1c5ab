"""The engine: decides where pods go. Pure: no I/O, no clock, no randomness, no logging.

Called with a `Problem` by provisioning, disruption, `simulate`, `explain`, stack previews and tests;
`solve` returns a `Plan`. Also owns the frozen values it works on, which the mirror and the cloud
providers fill. Spec: core/scheduling.
"""

from controller.scheduling.breaker import PAUSE, launch_slots
from controller.scheduling.evictionbudgets import PodDisruptionBudget
from controller.scheduling.headroom import headroom_pods
from controller.scheduling.instancetypes import CapacityType, InstanceType, Offering, in_price_order
from controller.scheduling.placed import why_placed
from controller.scheduling.plan import (
    MinValuesPolicy,
    Objective,
    Options,
    Placement,
    Plan,
    PlannedClaim,
    PreferencePolicy,
    Problem,
    ReservedMode,
    Stats,
    Unplaced,
)
from controller.scheduling.podfields import HostPort, OwnerReference, PodAffinityTerm, TopologySpread
from controller.scheduling.pods import (
    Pod,
    do_not_disrupt_span,
    has_do_not_disrupt,
    is_active,
    is_currently_reschedulable,
    is_daemonset,
    is_disruptable,
    is_evictable,
    is_fully_blocked,
    is_mirror,
    is_provisionable,
    is_reschedulable,
    is_terminal,
    is_terminating,
    will_need_a_place,
)
from controller.scheduling.pools import governing_config, governs, search_limit
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.resources import Resources
from controller.scheduling.run import queue_order
from controller.scheduling.selectors import LabelSelector, SelectorTerm
from controller.scheduling.snapshot import Snapshot, StateNode
from controller.scheduling.solver import solve
from controller.scheduling.taints import Taint, Toleration, is_ephemeral, merge_taints, tolerates
from controller.scheduling.virtualpods import Buffer, buffer_pods, headroom_owner, is_virtual
from controller.scheduling.volumes import PersistentVolume, StorageClass, VolumeClaim, VolumeIndex

__all__ = [
    "PAUSE",
    "Buffer",
    "CapacityType",
    "HostPort",
    "InstanceType",
    "LabelSelector",
    "MinValuesPolicy",
    "Objective",
    "Offering",
    "Options",
    "OwnerReference",
    "PersistentVolume",
    "Placement",
    "Plan",
    "PlannedClaim",
    "Pod",
    "PodAffinityTerm",
    "PodDisruptionBudget",
    "PreferencePolicy",
    "Problem",
    "Reason",
    "ReasonCode",
    "Requirement",
    "Requirements",
    "ReservedMode",
    "Resources",
    "SelectorTerm",
    "Snapshot",
    "StateNode",
    "Stats",
    "StorageClass",
    "Taint",
    "Toleration",
    "TopologySpread",
    "Unplaced",
    "VolumeClaim",
    "VolumeIndex",
    "buffer_pods",
    "do_not_disrupt_span",
    "governing_config",
    "governs",
    "has_do_not_disrupt",
    "headroom_owner",
    "headroom_pods",
    "in_price_order",
    "is_active",
    "is_currently_reschedulable",
    "is_daemonset",
    "is_disruptable",
    "is_ephemeral",
    "is_evictable",
    "is_fully_blocked",
    "is_mirror",
    "is_provisionable",
    "is_reschedulable",
    "is_terminal",
    "is_terminating",
    "is_virtual",
    "launch_slots",
    "merge_taints",
    "queue_order",
    "search_limit",
    "solve",
    "tolerates",
    "why_placed",
    "will_need_a_place",
]
