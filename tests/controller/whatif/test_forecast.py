"""What changes lead to: plans as the controller makes them, prices before and after, risks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.clock import FakeClock
from controller.kube import kinds
from controller.whatif import Apply, Change, Drain, Forecast, Impossible, Scale, changed, forecast
from controller.whatif.report import as_json, as_text
from tests.controller.fakes.objects import a_pod, a_pool
from tests.controller.whatif.clusters import a_cluster, deployment, stored, web_pod


def after(*changes: Change, cluster: Any = None) -> Forecast:
    before = a_cluster() if cluster is None else cluster
    return forecast(before, changed(before, changes), FakeClock(datetime(2026, 1, 1, tzinfo=UTC)))


def test_without_changes_everything_stays() -> None:
    found = after()

    assert (found.plan.claims, found.gone, found.moved, found.fleet) == ((), (), 0, found.before.fleet)
    assert (found.fleet.nodes, found.fleet.usd_per_hour) == (1, 0.1)


def test_scaling_up_fills_the_node_and_then_adds_others() -> None:
    found = after(Scale(namespace="shop", name="web", replicas=8))

    assert [each.node for each in found.plan.placements] == ["node-1"]
    assert [len(claim.pods) for claim in found.plan.claims] == [5]
    assert (found.fleet.nodes, found.fleet.usd_per_hour) == (2, pytest.approx(0.3))


def test_scaling_to_nothing_leaves_a_node_that_goes() -> None:
    found = after(Scale(namespace="shop", name="web", replicas=0))

    assert [command.nodes for command in found.then.commands] == [("node-1",)]
    assert "Then disruption would:\n  empty: delete node-1" in as_text(found)


def test_applying_a_deployment_counts_its_pods() -> None:
    found = after(Apply(manifest=deployment(replicas=3)))

    assert [each.pod_key for each in found.plan.placements] == ["shop/web-whatif-2"]


def test_a_drained_node_gives_its_pods_back() -> None:
    found = after(Drain(node="node-1"))

    assert [node.name for node in found.gone] == ["node-1"]
    assert (found.moved, len(found.plan.claims), found.fleet.usd_per_hour) == (2, 1, pytest.approx(0.1))


def test_a_pod_that_must_not_be_disrupted_is_a_risk() -> None:
    pod = web_pod(0)
    pod["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}

    found = after(Drain(node="node-1"), cluster=a_cluster(pod))

    assert [reason.code for reason in found.risks] == ["PodDoNotDisrupt"]
    assert "Against removing these nodes:\n  Pod/shop/web-0: " in as_text(found)


def test_a_new_pool_is_taken_as_ready() -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **a_pool("batch", ready=False)}
    pool["spec"]["template"]["spec"]["requirements"] = [{"key": "team", "operator": "In", "values": ["b"]}]
    pod = {"apiVersion": "v1", "kind": "Pod", **a_pod("job", spec={"nodeSelector": {"team": "b"}})}

    found = after(Apply(manifest=pool), Apply(manifest=pod))

    assert [claim.pool for claim in found.plan.claims] == ["batch"]


def test_an_applied_pool_takes_the_place_of_the_old_one() -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **a_pool(limits={"cpu": "2"})}

    found = after(Apply(manifest=pool), Scale(namespace="shop", name="web", replicas=9))

    assert found.plan.claims == ()
    assert {each.reason.short().count("limit") > 0 for each in found.plan.unplaced} == {True}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Drain(node="node-2"), "there is no Node node-2; there are: node-1"),
        (
            Scale(namespace="shop", name="api", replicas=1),
            "there is no Deployment or StatefulSet shop/api; there are: shop/web",
        ),
        (Scale(namespace="shop", name="web", replicas=-1), "web cannot have -1 pods"),
        (
            Apply(manifest={"apiVersion": "v1", "kind": "Secret"}),
            "v1 Secret is nothing decisions look at",
        ),
        (Apply(manifest={"apiVersion": "v1", "kind": "Pod", "metadata": {}}), "a Pod has no metadata.name"),
    ],
)
def test_what_cannot_be_changed_is_named(change: Change, words: str) -> None:
    with pytest.raises(Impossible) as refused:
        changed(a_cluster(), [change])

    assert words in str(refused.value)


def test_a_class_without_instance_types_is_named() -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **a_pool("gpu")}
    reference = pool["spec"]["template"]["spec"]["nodeClassRef"]
    pool["spec"]["template"]["spec"]["nodeClassRef"] = {**reference, "name": "gpu"}

    with pytest.raises(Impossible, match="EC2NodeClass gpu are not on file"):
        after(Apply(manifest=pool))


def test_the_forecast_as_text_and_as_json() -> None:
    cluster = a_cluster(web_pod(0), stored(kinds.POD, a_pod("huge", cpu="64")))

    found = after(Drain(node="node-1"), cluster=cluster)

    assert as_text(found).splitlines() == [
        "+ 1 m5.large eu-west-2a on-demand $0.1000/h (NodePool default)",
        "- node-1 m5.large eu-west-2a on-demand $0.1000/h (NodePool default)",
        "~ 1 running pod to move",
        "! 1 pod without a place",
        "  Pod default/huge",
        "    Pod/default/huge: fits no node",
        "      NodePool/default: no instance type is large enough: needs 64000m cpu "
        "(the largest allowed type, m5.xlarge, leaves 3900m cpu)",
        "1 -> 1 node, $0.1000 -> $0.1000 an hour, $73.00 -> $73.00 a month (+0.00)",
    ]
    body = as_json(found)
    assert body["create"][0]["instanceType"] == "m5.large"
    assert [each["pod"] for each in body["unplaced"]] == ["default/huge"]
    assert body["after"] == {"nodes": 1, "usdPerHour": 0.1, "usdPerMonth": 73.0, "unpricedNodes": 0}
