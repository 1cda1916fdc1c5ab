from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from framework.api import Condition, ConditionSet, NodePool, NodePoolSpec, ObjectMeta
from tests.framework.api.builders import a_template

CREATED = datetime(2026, 1, 5, 10, tzinfo=UTC)
LATER = CREATED + timedelta(minutes=5)
DEPENDENTS = ("First", "Second")


def a_set(**meta: object) -> ConditionSet:
    metadata = ObjectMeta(**{"name": "web", "generation": 3, "creation_timestamp": CREATED, **meta})  # type: ignore[arg-type]
    pool = NodePool(metadata=metadata, spec=NodePoolSpec(template=a_template()))
    return ConditionSet.of(pool, dependents=DEPENDENTS)


def summary(conditions: ConditionSet) -> list[str]:
    return [f"{c.type}={c.status} {c.reason}" for c in conditions.conditions]


def test_missing_conditions_are_unknown_since_creation() -> None:
    assert a_set().conditions == tuple(
        Condition(
            type=type,
            status="Unknown",  # type: ignore[arg-type]
            reason="AwaitingReconciliation",
            message="object is awaiting reconciliation",
            observed_generation=3,
            last_transition_time=CREATED,
        )
        for type in ("First", "Second", "Ready")
    )


def test_the_root_is_true_when_all_dependents_are() -> None:
    done = a_set().set_true("First", now=LATER).set_true("Second", now=LATER)

    assert summary(done) == ["First=True First", "Second=True Second", "Ready=True Ready"]


def test_a_false_dependent_makes_the_root_false() -> None:
    done = a_set().set_true("First", now=LATER).set_false("Second", "Broken", "it broke", now=LATER)

    root = done.get("Ready")
    assert root is not None
    assert (root.status, root.reason, root.message) == ("False", "UnhealthyDependents", "Second=False")


def test_an_old_false_dependent_leaves_the_root_unknown() -> None:
    before = a_set().set_false("Second", "Broken", now=LATER)
    edited = attrs.evolve(before, generation=4)

    root = edited.set_true("First", now=LATER).get("Ready")

    assert root is not None
    assert (root.status, root.reason) == ("Unknown", "ReconcilingDependents")


def test_a_dependent_of_an_older_generation_makes_the_root_unknown() -> None:
    done = a_set().set_true("First", now=LATER).set_true("Second", now=LATER)
    edited = attrs.evolve(done, generation=4).set_true("First", now=LATER)

    root = edited.get("Ready")
    assert root is not None
    assert (root.status, root.reason, root.message) == ("Unknown", "ReconcilingDependents", "Second=True")


def test_the_message_names_the_most_recent_transition_first() -> None:
    done = a_set().set_false("Second", "Broken", now=LATER)

    root = done.get("Ready")
    assert root is not None
    assert root.message == "Second=False, First=Unknown"


def test_the_transition_time_moves_only_with_the_status() -> None:
    first = a_set().set_unknown("First", "Waiting", "still", now=LATER)
    second = first.set_false("First", "Broken", now=LATER)

    times = [c.last_transition_time for c in (first.get("First"), second.get("First")) if c is not None]
    assert times == [CREATED, LATER]


def test_the_order_is_by_transition_with_the_root_last() -> None:
    done = a_set().set_true("First", now=LATER).set_true("Extra", now=LATER - timedelta(minutes=1))

    assert [c.type for c in done.conditions] == ["Second", "Extra", "First", "Ready"]


def test_a_deleting_object_is_observed_as_a_whole() -> None:
    deleting = a_set(deletion_timestamp=LATER)
    edited = attrs.evolve(deleting, generation=9).set_true("First", now=LATER)

    assert {c.observed_generation for c in edited.conditions} == {9}


def test_only_independent_conditions_can_be_cleared() -> None:
    extra = a_set().set_true("Extra", now=LATER)

    assert extra.clear("Extra").get("Extra") is None
    with pytest.raises(ValueError, match="First decides Ready"):
        extra.clear("First")


def test_setting_twice_changes_nothing() -> None:
    once = a_set().set_false("First", "Broken", "it broke", now=LATER)

    assert once.set_false("First", "Broken", "it broke", now=LATER + timedelta(hours=1)) == once


def test_without_dependents_the_root_is_what_it_was_set_to() -> None:
    alone = attrs.evolve(a_set(), dependents=(), conditions=())

    assert summary(alone.set_false("Ready", "Conflict", now=LATER)) == ["Ready=False Conflict"]
