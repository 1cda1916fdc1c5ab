"""Which machine images a node class means, and which type boots which (spec aws/ec2nodeclass §5.4, §5.5).

Called by the `nodeclass` reconciler and by launches. Owns alias and parameter look-ups with their
caches, the requirement sets of image variants and the choice among equals: one image per requirement
set, non-deprecated before deprecated, then the newest, then the greater name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws import aliases
from controller.cloud.aws.aliases import ParameterImage, Variant
from controller.cloud.aws.errors import AwsError
from controller.cloud.aws.gateway import Ec2, Filter, Ssm, tag_filters
from controller.cloud.aws.gateway.records import ImageRecord
from controller.cloud.aws.selectors import class_key
from controller.cloud.aws.ttl import TtlCache
from controller.scheduling import Requirements
from framework.api import Operator, RequirementSpec, labels
from framework.api.ec2nodeclass import Ami, EC2NodeClass
from framework.api.ec2selectors import AmiSelectorTerm

__all__ = ["Images", "chooser", "image_for"]

_TTL: Final = timedelta(minutes=1)
_ALIAS_TTL: Final = timedelta(hours=24)
_PARAMETER_TTL: Final = timedelta(minutes=5)
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_DEFAULT_OWNERS: Final = ("self", "amazon")

Candidate = tuple[ImageRecord, tuple[RequirementSpec, ...]]


def image_for(amis: Sequence[Ami], requirements: Requirements) -> Ami | None:
    """Return the first image that a type with these labels can boot, or None."""
    return chooser(amis)(requirements)


def chooser(amis: Sequence[Ami]) -> Callable[[Requirements], Ami | None]:
    """Return `image_for` over these images, for callers that ask it of hundreds of types."""
    parsed = [(ami, Requirements.from_specs(ami.requirements)) for ami in amis]

    def choose(requirements: Requirements) -> Ami | None:
        return next((ami for ami, wanted in parsed if requirements.intersects(wanted)), None)

    return choose


class Images:
    """Asks SSM and EC2 what a class's image terms match."""

    def __init__(self, ec2: Ec2, ssm: Ssm, clock: Clock, *, ttl: timedelta = _TTL) -> None:
        """Keep answers for `ttl`, alias parameters for a day, the user's own parameters for 5 min."""
        self._ec2 = ec2
        self._ssm = ssm
        self._clock = clock
        self._found: TtlCache[str, tuple[Ami, ...]] = TtlCache(clock, ttl)
        self._aliases: TtlCache[str, str] = TtlCache(clock, _ALIAS_TTL)
        self._parameters: TtlCache[str, str] = TtlCache(clock, _PARAMETER_TTL)

    async def resolve(self, node_class: EC2NodeClass, version: str) -> tuple[Ami, ...]:
        """Return the images, newest first, for a control plane of that version.

        Raises: AwsError; also when an alias names no image at all.
        """
        key = f"{class_key(node_class)}-{version}"
        known = self._found.get(key)
        if known is not None:
            return known
        terms = node_class.spec.ami_selector_terms
        alias = next((term for term in terms if term.alias), None)
        if alias is not None:
            candidates = await self._by_alias(alias, version)
        else:
            candidates = await self._by_terms(terms)
        return self._found.put(key, _chosen(candidates, self._clock.now()))

    async def _by_alias(self, term: AmiSelectorTerm, version: str) -> list[Candidate]:
        wanted = aliases.parameters(term.alias_family or "", term.alias_version or "", version)
        values = await asyncio.gather(*(self._alias_value(item) for item in wanted))
        by_id: dict[str, list[ParameterImage]] = {}
        for item, value in zip(wanted, values, strict=True):
            if value:
                by_id.setdefault(value, []).append(item)
        if not by_id:
            raise AwsError("ssm:GetParameter", "AliasNotFound", f"no image for {term.alias} on {version}")
        images = await self._ec2.images([Filter("image-id", tuple(sorted(by_id)))])
        return [
            (image, (*variant, architecture))
            for image in images
            if (architecture := _architecture(image)) is not None
            for item in by_id.get(image.id, ())
            for variant in item.requirement_sets
        ]

    async def _alias_value(self, item: ParameterImage) -> str | None:
        known = self._aliases.get(item.parameter)
        if known is not None:
            return known
        value = await self._ssm.parameter(item.parameter)
        return self._aliases.put(item.parameter, value) if value else None

    async def _by_terms(self, terms: Sequence[AmiSelectorTerm]) -> list[Candidate]:
        ids = {term.id for term in terms if term.id}
        for term in terms:
            if not term.id and term.ssm_parameter:
                value = await self._own_parameter(term.ssm_parameter)
                if value:
                    ids.add(value)
        queries: list[tuple[tuple[Filter, ...], tuple[str, ...]]] = []
        if ids:
            queries.append(((Filter("image-id", tuple(sorted(ids))),), ()))
        queries += [_query(term) for term in terms if not term.id and not term.ssm_parameter]
        answers = await asyncio.gather(*(self._ec2.images(filters, owners) for filters, owners in queries))
        found = {image.id: image for answer in answers for image in answer}
        return _by_variant(found.values())

    async def _own_parameter(self, name: str) -> str | None:
        known = self._parameters.get(name)
        if known is not None:
            return known
        value = await self._ssm.parameter(name)
        return self._parameters.put(name, value) if value and value.startswith("ami-") else None

    async def invalidate_deprecated(self) -> int:
        """Forget `latest` parameters whose image is deprecated by now; return how many (§5.5)."""
        mutable = {name: value for name in self._aliases if (value := self._aliases.get(name))}
        latest = {name: value for name, value in mutable.items() if aliases.is_mutable(name)}
        if not latest:
            return 0
        images = await self._ec2.images([Filter("image-id", tuple(sorted(set(latest.values()))))])
        now = self._clock.now()
        old = {image.id for image in images if _is_deprecated(image, now)}
        stale = [name for name, value in latest.items() if value in old]
        for name in stale:
            self._aliases.drop(name)
        return len(stale)


def _query(term: AmiSelectorTerm) -> tuple[tuple[Filter, ...], tuple[str, ...]]:
    filters = (*([Filter("name", (term.name,))] if term.name else []), *tag_filters(term.tags))
    if term.owner:
        return filters, (term.owner,)
    return filters, _DEFAULT_OWNERS if term.name else ()


def _architecture(image: ImageRecord) -> RequirementSpec | None:
    name = _ARCHITECTURES.get(image.architecture)
    return None if name is None else RequirementSpec(key=labels.ARCH, operator=Operator.IN, values=(name,))


def _is_deprecated(image: ImageRecord, now: datetime) -> bool:
    return image.deprecated_at is not None and image.deprecated_at <= now


def _by_variant(images: Iterable[ImageRecord]) -> list[Candidate]:
    """Return each image with its architecture, and with its accelerator when its name says one.

    Beyond the baseline: where an image of an accelerator is among them, plain images of the same
    architecture are kept away from types with it.
    """
    known = [
        (image, spec, aliases.variant_of(image.name)) for image in images if (spec := _architecture(image))
    ]
    special: dict[tuple[str, ...], set[Variant]] = {}
    for _, spec, variant in known:
        if variant is not Variant.STANDARD:
            special.setdefault(spec.values, set()).add(variant)
    return [
        (image, (*_variant_specs(variant, special.get(spec.values, set())), spec))
        for image, spec, variant in known
    ]


def _variant_specs(variant: Variant, special: set[Variant]) -> tuple[RequirementSpec, ...]:
    if variant is not Variant.STANDARD:
        return aliases.REQUIREMENTS[variant]
    return tuple(
        RequirementSpec(key=spec.key, operator=Operator.DOES_NOT_EXIST)
        for other in sorted(special)
        for spec in aliases.REQUIREMENTS[other]
    )


def _chosen(candidates: Iterable[Candidate], now: datetime) -> tuple[Ami, ...]:
    best: dict[Requirements, Candidate] = {}
    for image, specs in candidates:
        key = Requirements.from_specs(specs)
        rival = best.get(key)
        if rival is None or _rank(image, now) > _rank(rival[0], now):
            best[key] = (image, specs)
    ordered = sorted(
        best.values(), key=lambda item: (-item[0].created.timestamp(), item[0].id, _text(item[1]))
    )
    return tuple(
        Ami(
            id=image.id,
            name=image.name or None,
            deprecated=True if _is_deprecated(image, now) else None,
            requirements=tuple(sorted(specs, key=lambda spec: (len(spec.key), spec.key))),
        )
        for image, specs in ordered
    )


def _rank(image: ImageRecord, now: datetime) -> tuple[bool, datetime, str]:
    return not _is_deprecated(image, now), image.created, image.name


def _text(specs: Sequence[RequirementSpec]) -> str:
    return ",".join(f"{spec.key}{spec.operator}{spec.values}" for spec in specs)
