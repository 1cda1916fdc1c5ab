"""Every condition that our kinds carry, with its states and reasons (core/api §3 to §6, aws/ec2nodeclass §5).

Read by the reference pages; the controllers take the types from the enums. Holds the table only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

__all__ = ["CONDITIONS", "BufferCondition", "ClassCondition", "ConditionState", "PoolCondition"]


class PoolCondition(StrEnum):
    """The types of condition that a NodePool may carry."""

    VALIDATION_SUCCEEDED = "ValidationSucceeded"
    NODE_CLASS_READY = "NodeClassReady"
    NODE_REGISTRATION_HEALTHY = "NodeRegistrationHealthy"
    REGISTRATION_PAUSED = "RegistrationPaused"
    ROLLOUT_COMPLETE = "RolloutComplete"
    READY = "Ready"


class ClassCondition(StrEnum):
    """The types of condition that an EC2NodeClass may carry."""

    AMIS_READY = "AMIsReady"
    SUBNETS_READY = "SubnetsReady"
    SECURITY_GROUPS_READY = "SecurityGroupsReady"
    INSTANCE_PROFILE_READY = "InstanceProfileReady"
    CAPACITY_RESERVATIONS_READY = "CapacityReservationsReady"
    VALIDATION_SUCCEEDED = "ValidationSucceeded"
    READY = "Ready"


class BufferCondition(StrEnum):
    """The types of condition that a CapacityBuffer may carry."""

    READY_FOR_PROVISIONING = "ReadyForProvisioning"
    PROVISIONING = "Provisioning"
    VALIDATION_SUCCEEDED = "ValidationSucceeded"


@attrs.frozen
class ConditionState:
    """One state of a condition: type, status, the reasons it may have, and what it means."""

    type: str
    status: str
    reasons: tuple[str, ...]
    meaning: str


_ROOT: Final = (
    ConditionState("Ready", "True", ("Ready",), "All dependents are True at this generation."),
    ConditionState("Ready", "False", ("UnhealthyDependents",), "A dependent is False; the message names it."),
    ConditionState("Ready", "Unknown", ("ReconcilingDependents",), "A dependent is still being looked at."),
)
_MALFORMED: Final = ConditionState(
    "ValidationSucceeded", "False", ("Malformed",), "It cannot be read; its last readable state counts."
)
CONDITIONS: Final[Mapping[str, tuple[ConditionState, ...]]] = {
    "NodePool": (
        ConditionState("ValidationSucceeded", "True", ("ValidationSucceeded",), "It can be used."),
        ConditionState("ValidationSucceeded", "False", ("NodePoolValidationFailed",), "It cannot."),
        ConditionState("NodeClassReady", "True", ("NodeClassReady",), "The node class is Ready."),
        ConditionState(
            "NodeClassReady",
            "False",
            ("NodeClassNotFound", "NodeClassTerminating", "NodeClassReadinessUnknown"),
            "The class is missing, going, or not judged; else the reason is that of the class's own Ready.",
        ),
        ConditionState("NodeRegistrationHealthy", "True", ("NodeRegistrationHealthy",), "Launches register."),
        ConditionState("NodeRegistrationHealthy", "False", ("RegistrationFailed",), "They do not."),
        ConditionState(
            "NodeRegistrationHealthy", "Unknown", ("AwaitingReconciliation",), "Pool or class changed."
        ),
        ConditionState(
            "RegistrationPaused",
            "True",
            ("RegistrationFailed",),
            "Too many in a row did not: nothing is launched for a while, then one node until one registers.",
        ),
        ConditionState("RolloutComplete", "True", ("RolloutComplete",), "No node differs from the pool."),
        ConditionState("RolloutComplete", "False", ("NodesDrifted",), "The message says how many do."),
        _MALFORMED,
        *_ROOT,
    ),
    "NodeClaim": (
        ConditionState("Launched", "True", ("Launched",), "The instance exists."),
        ConditionState(
            "Launched", "Unknown", ("AwaitingReconciliation", "LaunchFailed"), "Not yet, or tried in vain."
        ),
        ConditionState("Registered", "True", ("Registered",), "The node has joined."),
        ConditionState("Registered", "Unknown", ("NodeNotFound", "RegistrationHookPending"), "Not yet."),
        ConditionState("Registered", "False", ("MultipleNodesFound",), "Two nodes claim the instance."),
        ConditionState("Initialized", "True", ("Initialized",), "Pods can be placed."),
        ConditionState(
            "Initialized",
            "Unknown",
            (
                "NodeNotFound",
                "NodeNotReady",
                "StartupTaintsExist",
                "KnownEphemeralTaintsExist",
                "ResourceNotRegistered",
                "DRADriverPoolsNotPublished",
            ),
            "What is still missing.",
        ),
        *_ROOT,
        ConditionState("Consolidatable", "True", ("Consolidatable",), "No pod event for consolidateAfter."),
        ConditionState(
            "Drifted",
            "True",
            ("NodePoolDrifted", "RequirementsDrifted", "InstanceTypeNotFound", "a reason of the provider"),
            "The node is not what its pool or class asks for any more.",
        ),
        ConditionState("ConsistentStateFound", "True", ("ConsistentStateFound",), "Node and claim agree."),
        ConditionState("ConsistentStateFound", "False", ("ConsistencyCheckFailed",), "They do not."),
        ConditionState(
            "DisruptionReason", "True", ("Underutilized", "Empty", "Drifted"), "A command is under way."
        ),
        ConditionState("Drained", "Unknown", ("Draining",), "Pods are being evicted."),
        ConditionState("Drained", "True", ("Drained",), "All pods that must go have gone."),
        ConditionState("VolumesDetached", "Unknown", ("AwaitingVolumeDetachment",), "Volumes are attached."),
        ConditionState("VolumesDetached", "True", ("VolumesDetached",), "No volume is in the way."),
        ConditionState(
            "VolumesDetached", "False", ("TerminationGracePeriodElapsed",), "Time was up; they stay behind."
        ),
        ConditionState("InstanceTerminating", "True", ("InstanceTerminating",), "EC2 ends the instance."),
        _MALFORMED,
    ),
    "NodeOverlay": (
        ConditionState("ValidationSucceeded", "True", ("ValidationSucceeded",), "The overlay is in force."),
        ConditionState("ValidationSucceeded", "False", ("RuntimeValidation",), "The message says why."),
        ConditionState("ValidationSucceeded", "False", ("Conflict",), "Another overlay of the same weight."),
        _MALFORMED,
        *_ROOT,
    ),
    "EC2NodeClass": (
        ConditionState("AMIsReady", "True", ("AMIsReady",), "Images were found."),
        ConditionState("AMIsReady", "False", ("AMINotFound", "UnsupportedAlias"), "None fits."),
        ConditionState("SubnetsReady", "True", ("SubnetsReady",), "Subnets were found."),
        ConditionState("SubnetsReady", "False", ("SubnetsNotFound",), "None was."),
        ConditionState("SecurityGroupsReady", "True", ("SecurityGroupsReady",), "They were found."),
        ConditionState("SecurityGroupsReady", "False", ("SecurityGroupsNotFound",), "None was."),
        ConditionState("InstanceProfileReady", "True", ("InstanceProfileReady",), "The profile is there."),
        ConditionState(
            "CapacityReservationsReady", "True", ("CapacityReservationsReady",), "They were looked up."
        ),
        ConditionState("ValidationSucceeded", "True", ("ValidationSucceeded",), "Launches are allowed."),
        ConditionState(
            "ValidationSucceeded",
            "False",
            (
                "TagValidationFailed",
                "CreateLaunchTemplateAuthCheckFailed",
                "CreateFleetAuthCheckFailed",
                "RunInstancesAuthCheckFailed",
                "ClusterCIDRResolutionFailed",
                "DependenciesNotReady",
            ),
            "What stands in the way.",
        ),
        ConditionState(
            "ValidationSucceeded", "Unknown", ("DependenciesNotReady",), "Another condition is Unknown."
        ),
        _MALFORMED,
        *_ROOT,
    ),
    "SchedulingConfig": (
        ConditionState("Ready", "True", ("Ready",), "The config governs the pools in status.nodePools."),
        ConditionState("Ready", "False", ("Conflict",), "An older config governs one of the pools."),
        ConditionState("Ready", "False", ("ScheduleInvalid",), "A headroom's schedule is no schedule."),
        _MALFORMED,
    ),
    "CapacityBuffer": (
        ConditionState("ReadyForProvisioning", "True", ("Resolved",), "The shape of the pods is known."),
        ConditionState(
            "ReadyForProvisioning",
            "False",
            ("ScalableRefNotFound", "PodTemplateNotFound", "ResolutionFailed"),
            "It is not.",
        ),
        ConditionState("Provisioning", "True", ("FitsExistingCapacity",), "The room is there."),
        ConditionState(
            "Provisioning",
            "False",
            ("RequiresNewCapacity", "NotReadyForProvisioning", "BufferEmpty"),
            "It is not, or none is asked for.",
        ),
        _MALFORMED,
    ),
}
"""States of every condition by kind, in reading order."""
