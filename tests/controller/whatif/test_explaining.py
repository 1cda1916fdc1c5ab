"""Why a pod has no node, why a node stays, what a pool may do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.clock import FakeClock
from controller.kube import kinds
from controller.scheduling import ReasonCode
from controller.whatif import Impossible
from controller.whatif.explaining import explain_budgets, explain_node, explain_pod, explain_pool
from controller.whatif.facts import Fact
from controller.whatif.forecast import Picture
from tests.controller.fakes.objects import a_pod, a_pool
from tests.controller.whatif.clusters import a_cluster, stored, web_pod

CLOCK = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}


def pending(**parts: Any) -> dict[str, Any]:
    return stored(kinds.POD, a_pod("p", **parts))


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (pending(cpu="64"), ReasonCode.UNPLACED),
        (pending(cpu="3"), ReasonCode.ON_NEW_CLAIM),
        (pending(cpu="100m"), ReasonCode.ON_EXISTING_NODE),
        (pending(node="node-1"), Fact.RUNS),
        (pending(status={"phase": "Succeeded"}), Fact.ENDED),
        (pending(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), Fact.BEING_DELETED),
        (pending(metadata={"ownerReferences": [DAEMON]}), Fact.BOUND_TO_ITS_NODE),
        (pending(status={"nominatedNodeName": "node-1"}), Fact.NOMINATED),
        (pending(status={"conditions": []}), Fact.NOT_WAITING),
    ],
)
def test_a_pod_is_explained_by_where_it_stands(pod: dict[str, Any], code: str) -> None:
    picture = Picture.of(a_cluster(pod, web_pod(1)))

    assert explain_pod(picture, "p", CLOCK).code == code


def test_a_node_is_explained_by_the_methods_of_disruption() -> None:
    report = explain_node(Picture.of(a_cluster()), "node-1")

    assert (report.node, report.pool, report.price, report.reason.code) == ("node-1", "default", 0.1, "Stays")


def test_a_pool_tells_its_nodes_and_budgets() -> None:
    lines = explain_pool(Picture.of(a_cluster()), "default").render().splitlines()

    assert lines[:2] == ["NodePool/default: what it may do now", "  1 node, $0.1000 an hour"]
    assert lines[2].startswith("  Underutilized: at most 1 node at a time of 1 counted (by nodes 10%)")


def test_a_pool_tells_what_it_lacks() -> None:
    pool = a_pool()
    pool["status"]["conditions"][1] |= {"status": "False", "message": "role web does not exist"}
    cluster = a_cluster(NODEPOOL=(stored(kinds.NODEPOOL, pool),))

    facts = explain_pool(Picture.of(cluster), "default").children

    assert facts[0].message == "NodeClassReady is False (role web does not exist)"


def test_budgets_are_shown_over_a_day() -> None:
    budgets = [{"nodes": "2", "schedule": "0 18 * * *", "duration": "1h"}]
    pool = a_pool(disruption={"budgets": budgets})
    cluster = a_cluster(NODEPOOL=(stored(kinds.NODEPOOL, pool),))

    facts = explain_budgets(Picture.of(cluster), "default").children

    assert [fact.text for fact in facts if fact.code == Fact.CALENDAR] == [
        "Thu 12:00 to Thu 18:00 UTC: Underutilized any number, Empty any number, Drifted any number",
        "Thu 18:00 to Thu 19:00 UTC: Underutilized 2, Empty 2, Drifted 2",
        "Thu 19:00 to Fri 12:00 UTC: Underutilized any number, Empty any number, Drifted any number",
    ]


def test_what_is_not_there_is_named_with_what_is_like_it() -> None:
    picture = Picture.of(a_cluster())

    with pytest.raises(Impossible, match="there is no Pod shop/web-7; did you mean shop/web-1"):
        explain_pod(picture, "shop/web-7", CLOCK)
    with pytest.raises(Impossible, match="there is no Node xyz; nothing there has a name like it"):
        explain_node(picture, "xyz")
    with pytest.raises(Impossible, match="there is no NodePool defualt; did you mean default"):
        explain_budgets(picture, "defualt")
