"""Settings: names, defaults, checks (spec core/observability §5, aws/iam-and-bootstrap §6)."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from controller.cli.settings import FeatureGates, InvalidSetting, Settings

NAMED = {"CLUSTER_NAME": "my-cluster"}


def load(environ: dict[str, str] | None = None, **flags: str) -> Settings:
    return Settings.load(NAMED | (environ or {}), flags)


def test_the_defaults_are_those_of_v1_9() -> None:
    settings = load()

    assert (settings.metrics_port, settings.health_probe_port) == (8080, 8081)
    assert (settings.batch_idle_duration, settings.batch_max_duration) == (
        timedelta(seconds=1),
        timedelta(seconds=10),
    )
    assert (settings.kube_client_qps, settings.kube_client_burst) == (200, 300)
    assert settings.leader_election_name == "karpenter-leader-election"
    assert settings.feature_gates == FeatureGates(reserved_capacity=True)


def test_a_flag_wins_over_the_environment() -> None:
    assert load({"LOG_LEVEL": "debug"}, log_level="error").log_level == "error"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("METRICS_PORT", "0"),
        ("METRICS_PORT", "http"),
        ("LOG_LEVEL", "trace"),
        ("PREFERENCE_POLICY", "respect"),
        ("MIN_VALUES_POLICY", "None"),
        ("BATCH_IDLE_DURATION", "1"),
        ("DISABLE_DRY_RUN", "yes"),
        ("FEATURE_GATES", "NodeRepair"),
        ("CLUSTER_ENDPOINT", "example.com"),
        ("RESERVED_ENIS", "-1"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "-0.1"),
        ("MODE", "dry"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(variable: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=f"^{variable} .*{value}") as caught:
        load({variable: value})

    assert caught.value.name == variable


def test_the_cluster_name_is_required() -> None:
    with pytest.raises(InvalidSetting, match="CLUSTER_NAME"):
        Settings.load({}, {})


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("1.5s", 1.5), ("1m30s", 90), ("250ms", 0.25), ("1h", 3600)]
)
def test_durations_are_spelled_as_in_go(text: str, seconds: float) -> None:
    assert load({"BATCH_MAX_DURATION": text}).batch_max_duration == timedelta(seconds=seconds)


def test_gates_change_what_they_name_and_unknown_ones_are_ignored() -> None:
    gates = load({"FEATURE_GATES": "NodeRepair=true,ReservedCapacity=false,Unknown=true"}).feature_gates

    assert gates == attrs.evolve(FeatureGates(), node_repair=True, reserved_capacity=False)


def test_an_unparsable_overhead_is_the_default() -> None:
    assert load({"VM_MEMORY_OVERHEAD_PERCENT": "a lot"}).vm_memory_overhead_percent == 0.075


@pytest.mark.parametrize(
    ("cpu", "workers"),
    [("0", 10), ("1000", 10), ("1001", 26), ("30000", 496), ("60000", 1000), ("99000", 1000)],
)
def test_workers_grow_with_the_cpu_request(cpu: str, workers: int) -> None:
    assert load({"CPU_REQUESTS": cpu}).workers(10, 1000) == workers
