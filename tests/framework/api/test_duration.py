from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.api import Duration, format_duration, parse_duration

parts = st.lists(st.tuples(st.integers(0, 1000), st.sampled_from("smh")), min_size=1, max_size=5)


@given(parts)
def test_parts_add_up_and_the_text_stays(listed: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in listed)

    span = parse_duration(text)

    assert span == timedelta(seconds=sum(n * {"s": 1, "m": 60, "h": 3600}[unit] for n, unit in listed))
    assert format_duration(span) == text


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10000)))
def test_formatted_spans_parse_to_themselves_in_whole_seconds(span: timedelta) -> None:
    assert parse_duration(format_duration(span)) == timedelta(seconds=int(span.total_seconds()))


def test_never_is_none() -> None:
    assert parse_duration("Never") is None
    assert format_duration(None) == "Never"


@pytest.mark.parametrize("text", ["", "30", "1d", "-1s", "1.5h", "never", "1h ", "1h\n", "10ms"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_copies_keep_the_text() -> None:
    span = Duration("720h")

    assert [str(copy.deepcopy(span)), str(pickle.loads(pickle.dumps(span)))] == ["720h", "720h"]  # noqa: S301
