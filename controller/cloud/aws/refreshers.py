"""Singleton reconcilers that keep the provider's knowledge of AWS fresh (spec aws/iam-and-bootstrap §11).

Run by `charpente run`. Each one reads something, hands it to the part that owns it and says when to
come back; a failure is raised, so that the loop backs off and the old knowledge stays.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from controller.cloud.aws.parts import Parts
from controller.kube import Key, Requeue

__all__ = ["CatalogueRefresher", "ImageInvalidator", "PriceRefresher", "TemplateKeeper"]

_HALF_A_DAY: Final = timedelta(hours=12)
_HALF_AN_HOUR: Final = timedelta(minutes=30)
_SWEEP: Final = timedelta(seconds=10)


class CatalogueRefresher:
    """Instance types and their zones, every 12 hours."""

    name = "providers.instancetype"

    def __init__(self, parts: Parts) -> None:
        """Refresh the parts' catalogue."""
        self._parts = parts

    async def reconcile(self, key: Key) -> Requeue:
        """Read both. Raises: AwsError."""
        del key
        await self._parts.catalogue.refresh()
        return Requeue(_HALF_A_DAY)


class PriceRefresher:
    """On-demand and spot prices, every 12 hours."""

    name = "providers.pricing"

    def __init__(self, parts: Parts) -> None:
        """Refresh the parts' prices."""
        self._parts = parts

    async def reconcile(self, key: Key) -> Requeue:
        """Read both. Raises: AwsError."""
        del key
        await self._parts.prices.refresh()
        return Requeue(_HALF_A_DAY)


class ImageInvalidator:
    """Forgets `latest` images that were deprecated meanwhile, every half hour."""

    name = "providers.ssm.invalidation"

    def __init__(self, parts: Parts) -> None:
        """Look at the parts' images."""
        self._parts = parts

    async def reconcile(self, key: Key) -> Requeue:
        """Ask EC2 about the images that are remembered. Raises: AwsError."""
        del key
        await self._parts.images.invalidate_deprecated()
        return Requeue(_HALF_AN_HOUR)


class TemplateKeeper:
    """Takes over a predecessor's launch templates once, then deletes those nobody uses."""

    name = "providers.launchtemplate"

    def __init__(self, parts: Parts) -> None:
        """Look after the parts' templates."""
        self._templates = parts.launcher.templates
        self._hydrated = False

    async def reconcile(self, key: Key) -> Requeue:
        """Hydrate or sweep. Raises: AwsError."""
        del key
        if not self._hydrated:
            await self._templates.hydrate()
            self._hydrated = True
        await self._templates.expire()
        return Requeue(_SWEEP)
