"""From pending pods to NodeClaims."""

from __future__ import annotations

from controller.provisioning.batcher import Batcher
from controller.provisioning.build import Batching, build, build_static
from controller.provisioning.claims import ClaimWriter, LimitsExceeded, to_nodeclaim
from controller.provisioning.pools import is_dynamic, is_ready, launchable, usable
from controller.provisioning.provisioner import Launcher, Planner, Provisioner, pods_to_place
from controller.provisioning.triggers import HeadroomTrigger, NodeTrigger, PodTrigger

__all__ = [
    "Batcher",
    "Batching",
    "ClaimWriter",
    "HeadroomTrigger",
    "Launcher",
    "LimitsExceeded",
    "NodeTrigger",
    "Planner",
    "PodTrigger",
    "Provisioner",
    "build",
    "build_static",
    "is_dynamic",
    "is_ready",
    "launchable",
    "pods_to_place",
    "to_nodeclaim",
    "usable",
]
