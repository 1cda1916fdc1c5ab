"""The cloud behind the nodes: the provider protocol and its errors; `controller.cloud.aws` implements it."""

from __future__ import annotations

from controller.cloud.provider import (
    CloudError,
    CreateFailed,
    Instance,
    InsufficientCapacity,
    NodeClaimNotFound,
    NodeClassNotReady,
    Provider,
    RepairPolicy,
)

__all__ = [
    "CloudError",
    "CreateFailed",
    "Instance",
    "InsufficientCapacity",
    "NodeClaimNotFound",
    "NodeClassNotReady",
    "Provider",
    "RepairPolicy",
]
