"""Limits of EC2 that its API does not tell: branch interfaces, and documented network bandwidth.

Read by `controller.cloud.aws.labelling` and `capacity`. `generate_limits.py` next to this file makes
`limits.json` and names its source and date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

__all__ = ["bandwidth_mbps", "branch_interfaces"]


@cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(resources.files(__name__).joinpath("limits.json").read_text())
    return document


def bandwidth_mbps() -> Mapping[str, int]:
    """Return baseline network bandwidth in Mbit/s by instance type."""
    return MappingProxyType(_document()["bandwidthMbps"])


def branch_interfaces() -> Mapping[str, int]:
    """Return branch interfaces by instance type; types that cannot trunk are absent."""
    return MappingProxyType(_document()["branchInterfaces"])
