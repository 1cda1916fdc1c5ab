"""The order of a teardown, its deadlines, and what it leaves alone."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from framework.api import labels
from framework.teardown import Interface, Kind, Leftover, TearDownFailed
from tests.framework.teardown.fakes import NOW, Scene

NODES = ("n1", "n2")


def a_scene(**changes: object) -> Scene:
    """Two nodes of one pool."""
    scene = Scene()
    scene.cluster.put(
        Kind.POOL, {"metadata": {"name": "default", "finalizers": ["karpenter.sh/termination"]}}
    )
    node_class = {"metadata": {"name": "default", "finalizers": [labels.NODECLASS_FINALIZER]}}
    scene.cluster.put(Kind.NODE_CLASS, node_class)
    for name in NODES:
        scene.account.states[f"i-{name}"] = "running"
        scene.cluster.put(Kind.CLAIM, a_claim(name))
    for key, value in changes.items():
        setattr(scene.cluster, key, value)
    return scene


def a_claim(name: str) -> dict[str, object]:
    return {
        "metadata": {"name": name, "finalizers": [labels.TERMINATION_FINALIZER]},
        "status": {"providerID": f"aws:///eu-west-2a/i-{name}", "nodeName": name},
    }


def an_interface(identifier: str, **changes: object) -> Interface:
    given: dict[str, object] = {
        "status": "available",
        "groups": frozenset({"sg-node"}),
        "tags": {},
        "description": "",
        "instance": None,
        **changes,
    }
    return Interface(id=identifier, **given)  # type: ignore[arg-type]


def test_pools_go_first_and_classes_last() -> None:
    scene = a_scene()

    report = scene.teardown().run()

    assert scene.cluster.changes[0] == "delete nodepools/default"
    assert scene.cluster.changes[-1] == "delete ec2nodeclasses/default"
    assert scene.cluster.stored == {}
    assert (report.terminated, report.finalizers_removed) == ([], [])


def test_a_budget_is_respected_until_the_deadline_and_named() -> None:
    scene = a_scene(budgets=("default/web",))

    scene.teardown().run()

    assert scene.clock.at - NOW >= scene.pace.patience
    assert "annotate nodeclaims/n1" in scene.cluster.changes
    assert any("PodDisruptionBudget default/web" in text for text in scene.said)


def test_without_a_controller_instances_end_before_their_claims_are_let_go() -> None:
    scene = a_scene(controller=False)

    report = scene.teardown().run()

    assert report.terminated == ["i-n1", "i-n2"]
    assert report.finalizers_removed == ["n1", "n2"]
    assert scene.cluster.let_go_alive == []


def test_a_claim_whose_instance_does_not_end_keeps_its_finalizer() -> None:
    scene = a_scene(controller=False)
    scene.account.stubborn.add("i-n1")

    with pytest.raises(TearDownFailed, match=r"1 NodeClaims left after \d+ s \(n1\)"):
        scene.teardown().run()

    assert scene.cluster.let_go_alive == []
    assert (Kind.CLAIM, "n1") in scene.cluster.stored


def test_a_second_run_finishes_what_the_first_could_not() -> None:
    scene = a_scene(controller=False)
    scene.account.stubborn.add("i-n1")
    with pytest.raises(TearDownFailed):
        scene.teardown().run()
    scene.account.stubborn.clear()

    scene.teardown().run()

    assert scene.cluster.objects(Kind.CLAIM) == []


def test_an_instance_without_a_claim_is_ended() -> None:
    scene = Scene()
    scene.account.states["i-lost"] = "running"

    assert scene.teardown().run().terminated == ["i-lost"]


def test_an_api_server_out_of_reach_changes_nothing() -> None:
    scene = a_scene(answers=False)

    with pytest.raises(TearDownFailed, match="nothing was changed"):
        scene.teardown().run()

    assert (scene.cluster.changes, scene.account.changes) == ([], [])


def test_a_cluster_that_is_gone_leaves_the_account_to_sweep() -> None:
    scene = a_scene(answers=False)
    scene.account.exists = False
    scene.account.left = [Leftover(kind="launch template", id="lt-1")]

    report = scene.teardown().run()

    assert (report.terminated, report.removed) == (["i-n1", "i-n2"], ["launch template lt-1"])


@pytest.mark.parametrize(
    ("interface", "deleted"),
    [
        (an_interface("eni-1", tags={"cluster.k8s.amazonaws.com/name": "demo"}), True),
        (an_interface("eni-1", tags={"cluster.k8s.amazonaws.com/name": "other"}), False),
        (an_interface("eni-1", description="aws-K8S-i-n1"), True),
        (an_interface("eni-1", description="aws-K8S-i-other"), False),
        (an_interface("eni-1", status="in-use", tags={"cluster.k8s.amazonaws.com/name": "demo"}), False),
    ],
    ids=["our tag", "another's tag", "our instance", "another's instance", "in use"],
)
def test_only_detached_interfaces_of_the_clusters_network_plugin_go(
    interface: Interface, deleted: bool
) -> None:
    scene = a_scene()
    scene.account.enis = [interface]

    report = scene.teardown().run()

    assert (report.interfaces_deleted, report.interfaces_left) == (
        (["eni-1"], []) if deleted else ([], ["eni-1"])
    )


def test_patience_of_none_forces_at_once() -> None:
    scene = a_scene(budgets=("default/web",))
    scene.pace = attrs.evolve(scene.pace, patience=timedelta(0))

    scene.teardown().run()

    assert scene.clock.at - NOW <= timedelta(seconds=10)
