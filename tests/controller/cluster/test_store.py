"""Stores: newest version wins, deleted stays deleted."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cluster import Index, Node, Store
from controller.kube import Change, kinds


def a_node(name: str = "n", version: int = 1, uid: str = "u1", zone: str = "a") -> dict[str, Any]:
    meta = {"name": name, "uid": uid, "resourceVersion": str(version), "labels": {"zone": zone}}
    return {"metadata": meta, "spec": {"providerID": f"p-{name}"}}


@pytest.fixture
def store() -> Store[Node]:
    return Store(kinds.NODE, Node.from_wire)


def zone(store: Store[Node], name: str = "n") -> str | None:
    node = store.by_name.get(name)
    return node.labels["zone"] if node is not None else None


def test_an_older_version_does_not_replace_a_newer_one(store: Store[Node]) -> None:
    store.upsert(a_node(version=5, zone="new"))

    store.upsert(a_node(version=4, zone="old"))

    assert zone(store) == "new"


def test_a_late_answer_does_not_bring_a_deleted_object_back(store: Store[Node]) -> None:
    store.upsert(a_node(version=5))
    store.remove(a_node(version=6))

    store.upsert(a_node(version=5))

    assert zone(store) is None


def test_an_object_made_anew_under_the_same_name_is_another(store: Store[Node]) -> None:
    changes: list[Change] = []
    store.upsert(a_node(version=5))
    store.subscribe(changes.append)

    store.upsert(a_node(version=9, uid="u2", zone="b"))

    assert [(c.old is not None, c.new is not None) for c in changes] == [
        (False, True),
        (True, False),
        (False, True),
    ]


def test_a_list_drops_what_it_does_not_hold_but_not_what_is_newer(store: Store[Node]) -> None:
    store.upsert(a_node("old", version=5, uid="u1"))
    store.upsert(a_node("ours", version=20, uid="u2"))

    store.keep_only(frozenset(), "10")

    assert sorted(store.by_name) == ["ours"]
    assert store.synced


def test_an_unreadable_object_keeps_its_last_readable_state(store: Store[Node]) -> None:
    store.upsert(a_node(version=5))
    broken = a_node(version=6)
    broken["status"] = {"capacity": {"cpu": "many"}}

    store.upsert(broken)

    assert zone(store) == "a"


def test_an_index_follows_changes(store: Store[Node]) -> None:
    index = Index(store, lambda node: (node.labels["zone"],))
    store.upsert(a_node("x", uid="u1", zone="a"))
    store.upsert(a_node("y", uid="u2", zone="a"))

    store.upsert(a_node("x", version=2, uid="u1", zone="b"))
    store.remove(a_node("y", version=3, uid="u2", zone="a"))

    assert [node.name for node in index.get("b")] == ["x"]
    assert index.get("a") == ()
