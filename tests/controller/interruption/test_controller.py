from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import attrs
import pytest

from controller.clock import FakeClock
from controller.cloud.aws.errors import AwsNotFound
from controller.cloud.aws.gateway import Message
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.cluster import Mirror, Shell
from controller.interruption import InterruptionReconciler, Queue, build
from controller.kube import NOW, SINGLETON, kinds
from controller.observability.metrics import Metrics
from controller.scheduling import CapacityType
from framework.api import labels
from tests.controller.cloud.aws.builders import claim_wire
from tests.controller.cloud.aws.fakes import FakeApi, FakeRecorder
from tests.controller.interruption.test_messages import an_event

SPOT = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"


@attrs.define
class FakeQueue:
    """A queue that hands out ten messages a call and keeps what was not deleted."""

    bodies: list[str] = attrs.Factory(list)
    deleted: list[str] = attrs.Factory(list)
    asked: list[tuple[str, str | None]] = attrs.Factory(list)

    async def queue_url(self, name: str, account: str | None = None) -> str:
        self.asked.append((name, account))
        if name == "missing":
            raise AwsNotFound("sqs:GetQueueUrl", "QueueDoesNotExist", name)
        return f"https://sqs/{name}"

    async def receive(self, url: str) -> tuple[Message, ...]:
        left = [i for i in range(len(self.bodies)) if str(i) not in self.deleted][:10]
        return tuple(Message(body=self.bodies[i], receipt=str(i)) for i in left)

    async def delete(self, url: str, receipt: str) -> None:
        self.deleted.append(receipt)


@attrs.define
class Scene:
    api: FakeApi
    queue: FakeQueue
    recorder: FakeRecorder
    unavailable: UnavailableOfferings
    metrics: Metrics
    reconciler: InterruptionReconciler

    def node(self, number: int) -> None:
        """Add a spot claim for instance `i-<number>`."""
        wire = claim_wire(f"claim-{number}")
        wire["metadata"]["labels"].update(
            {
                labels.INSTANCE_TYPE: "m5.large",
                labels.ZONE: "eu-west-2a",
                labels.CAPACITY_TYPE: "spot",
            }
        )
        wire["metadata"]["finalizers"] = [labels.TERMINATION_FINALIZER]
        wire["status"] = {"providerID": f"aws:///eu-west-2a/i-{number}"}
        self.api.add(kinds.NODECLAIM, wire)

    @property
    def ended(self) -> list[str]:
        claims = self.api.mirror.claims.values()
        return sorted(c.metadata.name for c in claims if c.metadata.deletion_timestamp is not None)

    @property
    def reasons(self) -> Counter[str]:
        return Counter(event.reason for event in self.recorder.events)


def a_scene(queue_name: str = "demo") -> Scene:
    clock = FakeClock(datetime(2026, 6, 1, 12, 0, 5, tzinfo=UTC))
    mirror = Mirror()
    api, recorder, queue = FakeApi(mirror), FakeRecorder(), FakeQueue()
    unavailable, metrics = UnavailableOfferings(clock), Metrics()
    shell: Any = Shell(
        client=api,  # type: ignore[arg-type]  # a double with the same methods
        mirror=mirror,
        writer=None,  # type: ignore[arg-type]  # not used here
        recorder=recorder,  # type: ignore[arg-type]  # a double
        metrics=metrics,
        clock=clock,
        random=Random(1),  # noqa: S311 - nothing random here
    )
    source = Queue(given=queue_name, sqs=queue, unavailable=unavailable)  # type: ignore[arg-type]  # a double
    (spec,) = build(source, shell)
    assert isinstance(spec.reconciler, InterruptionReconciler)
    return Scene(api, queue, recorder, unavailable, metrics, spec.reconciler)


@pytest.fixture
def scene() -> Scene:
    return a_scene()


async def test_a_spot_warning_ends_the_claim_and_marks_the_offering(scene: Scene) -> None:
    scene.node(1)
    scene.queue.bodies = [an_event(SPOT, {"instance-id": "i-1"})]

    requeue = await scene.reconciler.reconcile(SINGLETON)

    assert scene.ended == ["claim-1"]
    assert scene.unavailable.contains(CapacityType.SPOT, "m5.large", "eu-west-2a")
    assert not scene.unavailable.contains(CapacityType.ON_DEMAND, "m5.large", "eu-west-2a")
    assert scene.reasons == {"SpotInterrupted": 1, "TerminatingOnInterruption": 1}
    assert requeue == NOW
    waited = scene.metrics.registry.get_sample_value(
        "karpenter_interruption_message_queue_duration_seconds_sum"
    )
    assert waited == timedelta(seconds=5).total_seconds()


async def test_fifty_warnings_with_duplicates_end_each_claim_once(scene: Scene) -> None:
    for number in range(25):
        scene.node(number)
    warnings = [an_event(SPOT, {"instance-id": f"i-{n}"}) for n in range(25) for _ in range(2)]
    scene.queue.bodies = warnings + [an_event(REBALANCE, {"instance-id": f"i-{n}"}) for n in range(10)]

    for _ in range(6):
        await scene.reconciler.reconcile(SINGLETON)

    assert len(scene.ended) == 25
    assert len(scene.queue.deleted) == 60
    assert scene.reasons["TerminatingOnInterruption"] == 25
    assert scene.reasons["SpotRebalanceRecommendation"] == 10


async def test_a_rebalance_recommendation_only_says_so(scene: Scene) -> None:
    scene.node(1)
    scene.queue.bodies = [an_event(REBALANCE, {"instance-id": "i-1"})]

    await scene.reconciler.reconcile(SINGLETON)

    assert scene.ended == []
    assert scene.reasons == {"SpotRebalanceRecommendation": 1}


@pytest.mark.parametrize(
    "body", ["", "no json", json.dumps({"hello": "world"}), an_event(SPOT, {"instance-id": "i-foreign"})]
)
async def test_foreign_and_malformed_messages_are_dropped(scene: Scene, body: str) -> None:
    scene.node(1)
    scene.queue.bodies = [body]

    await scene.reconciler.reconcile(SINGLETON)

    assert (scene.ended, scene.queue.deleted, scene.recorder.events) == ([], ["0"], [])


async def test_a_message_that_cannot_be_acted_on_stays_and_the_others_go_on(scene: Scene) -> None:
    scene.node(1)
    scene.node(2)
    scene.queue.bodies = [an_event(SPOT, {"instance-id": f"i-{n}"}) for n in (1, 2)]
    delete = scene.api.delete

    async def broken(kind: Any, name: str, **more: Any) -> Any:
        if name == "claim-1":
            raise ConnectionError("API server away")
        return await delete(kind, name, **more)

    scene.api.delete = broken  # type: ignore[method-assign]  # one call fails

    await scene.reconciler.reconcile(SINGLETON)

    assert (scene.ended, scene.queue.deleted) == (["claim-2"], ["1"])


@pytest.mark.parametrize("given", ["missing", "arn:aws:sqs:eu-west-2:111122223333:missing"])
async def test_a_queue_that_is_not_there_is_named_as_it_was_given(given: str) -> None:
    scene = a_scene(given)

    with pytest.raises(AwsNotFound, match=f"INTERRUPTION_QUEUE: '{given}'"):
        await scene.reconciler.reconcile(SINGLETON)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("demo", ("demo", None)),
        (" demo ", ("demo", None)),
        ("arn:aws:sqs:eu-west-2:111122223333:demo", ("demo", "111122223333")),
        ("https://sqs.eu-west-2.amazonaws.com/111122223333/demo", ("demo", "111122223333")),
        ("https://sqs.eu-west-2.amazonaws.com/111122223333/demo/", ("demo", "111122223333")),
    ],
)
async def test_the_queue_is_found_by_name_arn_or_url(given: str, asked: tuple[str, str | None]) -> None:
    scene = a_scene(given)

    await scene.reconciler.reconcile(SINGLETON)

    assert scene.queue.asked == [asked]
