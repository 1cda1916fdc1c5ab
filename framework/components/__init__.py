"""Pulumi components: what the programs in `stacks/` are put together from.

One component a file, each with frozen arguments, few knobs and typed outputs. Every
child has its component as parent; nothing here reads configuration.
"""

from __future__ import annotations

from framework.components.cluster import Cluster, ClusterArgs
from framework.components.controller import Controller, ControllerArgs
from framework.components.controller_identity import ControllerIdentity, ControllerIdentityArgs, Irsa
from framework.components.controller_settings import ControllerSettings
from framework.components.crds import Crds
from framework.components.endpoints import Endpoints, EndpointsArgs
from framework.components.fargate_capacity import FargateCapacity, FargateCapacityArgs
from framework.components.first_capacity import FirstCapacity, FirstCapacityArgs
from framework.components.interruption_queue import InterruptionQueue, InterruptionQueueArgs
from framework.components.network import NatMode, Network, NetworkArgs
from framework.components.node_role import NodeKind, NodeRole, NodeRoleArgs
from framework.components.pools import Manifest, Pools, PoolsArgs
from framework.components.spot_role import SpotRole, SpotRoleArgs
from framework.components.teardown import Teardown, TeardownArgs

__all__ = [
    "Cluster",
    "ClusterArgs",
    "Controller",
    "ControllerArgs",
    "ControllerIdentity",
    "ControllerIdentityArgs",
    "ControllerSettings",
    "Crds",
    "Endpoints",
    "EndpointsArgs",
    "FargateCapacity",
    "FargateCapacityArgs",
    "FirstCapacity",
    "FirstCapacityArgs",
    "InterruptionQueue",
    "InterruptionQueueArgs",
    "Irsa",
    "Manifest",
    "NatMode",
    "Network",
    "NetworkArgs",
    "NodeKind",
    "NodeRole",
    "NodeRoleArgs",
    "Pools",
    "PoolsArgs",
    "SpotRole",
    "SpotRoleArgs",
    "Teardown",
    "TeardownArgs",
]
