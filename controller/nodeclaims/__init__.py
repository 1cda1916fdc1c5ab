"""The life of a NodeClaim and its Node, from launch to termination, and the upkeep of pools."""

from __future__ import annotations

from controller.nodeclaims.build import build

__all__ = ["build"]
