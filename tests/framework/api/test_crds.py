from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
import yaml

from framework.api import Kind, crd, crds
from framework.api.crds import ALL_GATES, KINDS, to_yaml
from framework.api.openapi import declared_schema
from framework.api.wire import Wire, decoder_of, wire_fields

by_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.INFO.kind for kind in KINDS])


@by_kind
def test_a_crd_is_the_golden_one(kind: type[Kind], golden: Callable[[str, str], None]) -> None:
    golden(f"{kind.INFO.crd_name}.yaml", to_yaml(crd(kind)))


@by_kind
def test_yaml_gives_the_manifest_back(kind: type[Kind]) -> None:
    assert yaml.safe_load(to_yaml(crd(kind))) == crd(kind)


def test_later_kinds_and_fields_need_their_gate() -> None:
    names = [definition["metadata"]["name"] for definition in crds()]
    later = [definition["metadata"]["name"] for definition in crds(ALL_GATES)]

    assert "capacitybuffers.autoscaling.x-k8s.io" not in names
    assert set(later) - set(names) == {"capacitybuffers.autoscaling.x-k8s.io"}
    assert "cpuOptions" not in str(crds())
    assert "cpuOptions" in str(crds(frozenset({"CPUOptions"})))
    assert "Balanced" in str(crds(frozenset({"BalancedConsolidation"})))


def _classes(cls: type[Wire]) -> Iterator[type[Wire]]:
    yield cls
    for member in wire_fields(cls):
        for hint in (member.type, *getattr(member.type, "__args__", ())):
            if isinstance(hint, type) and issubclass(hint, Wire):
                yield from _classes(hint)


@by_kind
def test_every_field_is_described_in_a_sentence(kind: type[Kind]) -> None:
    for cls in _classes(kind):
        for member in wire_fields(cls):
            text = declared_schema(member).description
            assert text.endswith("."), f"{cls.__name__}.{member.name}: {text!r}"


@by_kind
def test_published_defaults_are_those_of_the_classes(kind: type[Kind]) -> None:
    for cls in _classes(kind):
        for member in wire_fields(cls):
            published: Any = declared_schema(member).default
            if published is not None and member.name != "status":
                assert decoder_of(member.type)(published) == member.default, f"{cls.__name__}.{member.name}"


@by_kind
def test_classes_are_frozen(kind: type[Kind]) -> None:
    for cls in _classes(kind):
        assert attrs.has(cls)
        assert cls.__setattr__ is not object.__setattr__
