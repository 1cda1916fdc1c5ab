"""The node lifecycle loop of the AWS cloud controller manager: no instance, no Node.

As there, only nodes that are not ready are looked at, and a Node goes when its instance does not exist any
more. Called in a loop by `sandbox.daemon`.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox.kubernetes.api import Api, ApiError, Object
from sandbox.nodes.agent import Agent

__all__ = ["PERIOD_S", "CloudController"]

PERIOD_S = 5.0
"""As `--node-monitor-period` of the cloud controller manager."""


class CloudController:
    """Deletes Nodes whose instance is gone, once Kubernetes has noticed their silence."""

    def __init__(self, agent: Agent, api: Api, *, say: Callable[[str], None] = print) -> None:
        """Take the agent, which knows whose instance is gone, and the cluster."""
        self._agent = agent
        self._api = api
        self._say = say

    def tick(self) -> None:
        """Look once at every silenced node."""
        for name, instance_id in sorted(self._agent.silenced.items()):
            node = self._api.find(f"/api/v1/nodes/{name}")
            if node is None or not node["spec"].get("providerID", "").endswith(f"/{instance_id}"):
                self._agent.forget(name)
            elif not _is_ready(node) and "deletionTimestamp" not in node["metadata"]:
                self._delete(name, instance_id, node)

    def _delete(self, name: str, instance_id: str, node: Object) -> None:
        try:
            self._api.delete(f"/api/v1/nodes/{name}", {"preconditions": {"uid": node["metadata"]["uid"]}})
        except ApiError as exc:
            if exc.status not in (404, 409):
                raise
            return
        self._say(f"node {name}: deleted, because instance {instance_id} does not exist")


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
