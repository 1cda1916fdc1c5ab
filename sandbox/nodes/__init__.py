"""Nodes from instances: what a running EC2 instance's bootstrap and kubelet would do to the cluster.

Public: `Agent` (instances → nodes), `CloudController` (nodes without instance), `Cloud` (what they ask of
AWS), `kwok_program` (keeps leases and runs pods).
"""

from __future__ import annotations

from sandbox.nodes.agent import Agent
from sandbox.nodes.cloud import Cloud
from sandbox.nodes.cloud_controller import CloudController
from sandbox.nodes.kwok import kwok_program

__all__ = ["Agent", "Cloud", "CloudController", "kwok_program"]
