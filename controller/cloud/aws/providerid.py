"""Provider ids: how Kubernetes names an instance (spec aws/launch §2). Used by the whole provider."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["instance_id", "provider_id"]

_SHAPE: Final = re.compile(r"^.*:///([^/]*)/([^/]+)$")


def provider_id(zone: str, identifier: str) -> str:
    """Return the provider id of an instance."""
    return f"aws:///{zone}/{identifier}"


def instance_id(text: str) -> str | None:
    """Return the instance's id, or None when the text is not a provider id."""
    match = _SHAPE.match(text)
    return match[2] if match else None
