"""The controller's pods, run as processes of the host: command, environment, token, probes, restarts.

Public: `HostPods`, `Surroundings`, `CredentialServer`, `PORTS_ANNOTATION`.
"""

from __future__ import annotations

from sandbox.host_pods.credentials import CredentialServer
from sandbox.host_pods.host_pod import PORTS_ANNOTATION, HostPod, Surroundings
from sandbox.host_pods.runner import HostPods, is_host_pod

__all__ = ["PORTS_ANNOTATION", "CredentialServer", "HostPod", "HostPods", "Surroundings", "is_host_pod"]
