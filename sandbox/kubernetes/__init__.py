"""A real Kubernetes control plane for the sandbox, and ways to reach it.

Public: `ControlPlane`, `Options`, `Api`, `ApiError`, `Access`, `Authority`.
"""

from __future__ import annotations

from sandbox.kubernetes.api import Api, ApiError, Object
from sandbox.kubernetes.certificates import Authority, KeyPair
from sandbox.kubernetes.control_plane import ControlPlane, Options
from sandbox.kubernetes.kubeconfig import Access

__all__ = ["Access", "Api", "ApiError", "Authority", "ControlPlane", "KeyPair", "Object", "Options"]
