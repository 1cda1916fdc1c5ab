"""Every case file that is in reach passes, when the folder of cases is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cases.__main__ import outcome
from tests.cases.files import Variant, variants_in

_FOLDER = Path(os.environ.get("CHARPENTE_CASES", Path(__file__).parents[3] / "shared" / "cases"))
_VARIANTS = list(variants_in(_FOLDER)) if _FOLDER.is_dir() else []


@pytest.mark.parametrize("variant", [v for v in _VARIANTS if v.when == "provision"], ids=lambda v: v.label)
def test_provision_cases_of_equal_parity(variant: Variant) -> None:
    result, faults = outcome(variant)

    if variant.parity == "same":
        assert faults == [] or result == "skipped"
