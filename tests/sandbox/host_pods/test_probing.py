"""Probes change their verdict at their thresholds, and the pod's status follows."""

from __future__ import annotations

from sandbox.host_pods.pod_spec import ContainerSpec, HttpProbe
from sandbox.host_pods.pod_status import Progress, status_patch
from sandbox.host_pods.probing import Probing, ask
from sandbox.processes import free_port

CONTAINER = ContainerSpec(
    name="controller",
    image="charpente",
    command=("charpente", "run"),
    ports={},
    startup=None,
    liveness=None,
    readiness=None,
    restarts=True,
)
PROBE = HttpProbe(path="/", port=1, initial_delay_s=5, period_s=10, failure_threshold=3)
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"


def test_the_first_question_waits_for_the_initial_delay() -> None:
    probing = Probing(PROBE, started=100, passes=False)

    assert (probing.is_due(104.9), probing.is_due(105)) == (False, True)


def test_liveness_fails_after_as_many_failures_in_a_row_as_allowed() -> None:
    probing = Probing(PROBE, started=0, passes=True)

    verdicts = []
    for ok in (False, False, True, False, False, False):
        probing.record(ok, now=0)
        verdicts.append(probing.passes)

    assert verdicts == [True, True, True, True, True, False]


def test_readiness_holds_after_one_success() -> None:
    probing = Probing(PROBE, started=0, passes=False)

    probing.record(True, now=5)

    assert (probing.passes, probing.is_due(14), probing.is_due(15)) == (True, False, True)


def test_nobody_listening_is_a_failure() -> None:
    assert not ask(free_port(), "/healthz", timeout_s=1)


def conditions(patch: dict[str, dict[str, list[dict[str, str]]]]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in patch["status"]["conditions"]}


def test_a_running_container_that_is_not_ready_leaves_the_pod_not_ready() -> None:
    progress = Progress(pod_started=THEN, started=THEN, passed_startup=True, ready=False)

    patch = status_patch(CONTAINER, progress, host_ip="10.0.0.1", pod_ip="100.127.0.1", now=NOW)

    assert patch["status"]["phase"] == "Running"
    assert conditions(patch)["Ready"] == conditions(patch)["ContainersReady"] == "False"
    assert patch["status"]["containerStatuses"][0]["state"]["running"] == {"startedAt": THEN}


def test_a_container_that_ended_shows_why_and_how_often() -> None:
    progress = Progress(
        pod_started=THEN,
        restarts=2,
        waiting="CrashLoopBackOff",
        message="boom",
        last_exit=1,
        last_finished=NOW,
    )

    patch = status_patch(CONTAINER, progress, host_ip="10.0.0.1", pod_ip="100.127.0.1", now=NOW)

    container = patch["status"]["containerStatuses"][0]
    assert container["restartCount"] == 2
    assert container["state"] == {
        "running": None,
        "terminated": None,
        "waiting": {"reason": "CrashLoopBackOff", "message": "boom"},
    }
    assert container["lastState"] == {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": NOW}}
