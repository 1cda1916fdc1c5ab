"""The tables of manifests, judged offline by the generated CRDs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from framework.api import admission, kind_of
from framework.api.admission import admit
from framework.api.crds import ALL_GATES, KINDS
from framework.api.openapi import kind_schema
from tests.framework.api.admission_table import AdmissionCase, admission_cases

CASES = admission_cases()


def test_the_tables_hold_at_least_150_manifests() -> None:
    assert len(CASES) >= 150
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_offline_verdict(case: AdmissionCase) -> None:
    kind = kind_of(case.manifest["apiVersion"], case.manifest["kind"])
    assert kind is not None

    problems = admit(kind, case.manifest, gates=case.gates)
    if case.update is not None:
        assert problems == ()
        problems = admit(kind, case.update, old=case.manifest, gates=case.gates)

    if case.reject is None:
        assert problems == ()
    else:
        assert case.reject in [problem.field for problem in problems]


def _rules_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        yield from (rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))
        for part in schema.values():
            yield from _rules_of(part)


def test_the_tables_see_every_rule_from_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[str, bool]] = set()
    judged = admission._holds

    def noting(rule: str, value: Any, old: Any) -> bool:
        verdict = judged(rule, value, old)
        if "oldSelf" not in rule or old is not None:
            seen.add((rule, verdict))
        return verdict

    monkeypatch.setattr(admission, "_holds", noting)
    for case in CASES:
        kind = kind_of(case.manifest["apiVersion"], case.manifest["kind"])
        assert kind is not None
        old = None if case.update is None else case.manifest
        admit(kind, case.update or case.manifest, old=old, gates=case.gates)

    rules = {rule for kind in KINDS for rule in _rules_of(kind_schema(kind, ALL_GATES))}
    assert sorted(rule for rule in rules if (rule, True) not in seen) == []
    assert sorted(rule for rule in rules if (rule, False) not in seen) == []
