"""The tables of manifests, judged offline by the generated CRDs."""

from __future__ import annotations

import pytest

from framework.api import kind_of
from framework.api.admission import admit
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
