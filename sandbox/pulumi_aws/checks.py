"""Check and Diff as plain functions: what the inputs become and what a change means.

Called by the provider. Owns defaults, generated names and the question whether a
change replaces the object; never talks to AWS.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum

import attrs

from sandbox.pulumi_aws.resource import Resource
from sandbox.pulumi_aws.wire import DEFAULTS, Properties, Value, declared, equal

_SUFFIX_LENGTH = 7


def with_defaults(
    resource: Resource, news: Properties, olds: Mapping[str, Value], name: str, seed: bytes
) -> Properties:
    """The inputs with defaults and a name, and under `__defaults` what was filled in.

    A generated name is kept as long as the program does not give one itself.
    """
    filled = declared(news)
    added = [key for key in resource.defaults if key not in filled]
    filled.update({key: resource.defaults[key] for key in added})
    named = resource.autoname
    if named is not None and named not in filled and f"{named}Prefix" not in filled:
        kept = olds.get(named) if named in (olds.get(DEFAULTS) or ()) else None
        filled[named] = kept or f"{name}-{hashlib.sha256(seed).hexdigest()[:_SUFFIX_LENGTH]}"
        added.append(named)
    filled[DEFAULTS] = sorted(added)
    return filled


class ChangeKind(StrEnum):
    """What happened to one property."""

    ADD = "ADD"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@attrs.frozen(kw_only=True)
class Change:
    """One property that differs."""

    property: str
    kind: ChangeKind
    replaces: bool


@attrs.frozen(kw_only=True)
class Difference:
    """All that differs between two sets of inputs."""

    changes: tuple[Change, ...]
    delete_first: bool
    """Whether the old object must go before the new one comes, because they share a name."""


def difference(
    resource: Resource, olds: Mapping[str, Value], news: Mapping[str, Value], ignored: Sequence[str]
) -> Difference:
    """What changes when the inputs go from `olds` to `news`."""
    before, after = declared(olds), declared(news)
    names = sorted((set(before) | set(after)) - set(ignored))
    changes = tuple(
        Change(
            property=key,
            kind=_kind(key, before, after),
            replaces=key in resource.force_new,
        )
        for key in names
        if not equal(before.get(key), after.get(key))
    )
    named = resource.autoname
    fixed = named is not None and named not in (news.get(DEFAULTS) or ())
    same = named is not None and before.get(named) == after.get(named)
    return Difference(
        changes=changes,
        delete_first=any(change.replaces for change in changes) and fixed and same,
    )


def _kind(key: str, before: Mapping[str, Value], after: Mapping[str, Value]) -> ChangeKind:
    if key not in before:
        return ChangeKind.ADD
    return ChangeKind.UPDATE if key in after else ChangeKind.DELETE
