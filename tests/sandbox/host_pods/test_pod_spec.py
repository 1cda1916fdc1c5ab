"""A pod's command, environment and probes are read as the kubelet would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.host_pods.pod_spec import HttpProbe, UnsupportedPod, environment, read_container
from sandbox.host_pods.runner import is_host_pod


def a_pod(**container: Any) -> dict[str, Any]:
    base = {"name": "controller", "image": "charpente", "command": ["charpente", "run"]}
    return {
        "metadata": {"name": "karpenter-0", "namespace": "kube-system", "labels": {"app": "karpenter"}},
        "spec": {"nodeName": "node-1", "containers": [{**base, **container}]},
    }


def no_data(kind: str, name: str) -> Mapping[str, str] | None:
    return None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ({"value": "text"}, "text"),
        ({}, ""),
        ({"value": "$(EARLIER)/x $(LATER) $$(EARLIER)"}, "one/x $(LATER) $(EARLIER)"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}, "kube-system"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}, "karpenter"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, "node-1"),
        ({"valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}}, "1500"),
        ({"valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "0"}}}, "2"),
        ({"valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}, str(2**30)),
        ({"valueFrom": {"resourceFieldRef": {"resource": "requests.memory"}}}, str(2**30)),
    ],
)
def test_a_variable_has_the_value_of_its_source(variable: dict[str, Any], value: str) -> None:
    pod = a_pod(
        env=[{"name": "EARLIER", "value": "one"}, {"name": "IT", **variable}],
        resources={"requests": {"cpu": "1500m"}, "limits": {"memory": "1Gi"}},
    )

    assert environment(pod, no_data)["IT"] == value


def test_secrets_and_config_maps_are_looked_up() -> None:
    def data(kind: str, name: str) -> Mapping[str, str] | None:
        return {("Secret", "s"): {"key": "hidden"}, ("ConfigMap", "c"): {"A": "1"}}.get((kind, name))

    pod = a_pod(
        envFrom=[{"configMapRef": {"name": "c"}, "prefix": "P_"}],
        env=[
            {"name": "IT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
            {"name": "GONE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "B", "optional": True}}},
        ],
    )

    assert environment(pod, data) == {"P_A": "1", "IT": "hidden"}


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        (
            {"env": [{"name": "IT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            "Secret s has no key k",
        ),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, "ConfigMap c does not exist"),
        ({"env": [{"name": "IT", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]}, "spec.nothing"),
    ],
)
def test_a_source_that_is_missing_is_named(container: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedPod, match=reason):
        environment(a_pod(**container), no_data)


def test_a_probe_finds_its_port_by_name() -> None:
    container = read_container(
        a_pod(
            ports=[{"name": "http", "containerPort": 8081}],
            livenessProbe={"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 30},
        )
    )

    assert container.liveness == HttpProbe(path="/healthz", port=8081, initial_delay_s=30)
    assert container.command == ("charpente", "run")


def test_a_probe_that_cannot_be_run_is_refused() -> None:
    with pytest.raises(UnsupportedPod, match="readinessProbe: only httpGet"):
        read_container(a_pod(readinessProbe={"exec": {"command": ["true"]}}))


@pytest.mark.parametrize(
    ("changes", "ours"), [({}, True), ({"command": ["nginx"]}, False), ({"command": None}, False)]
)
def test_pods_of_this_project_run_on_the_host(changes: dict[str, Any], ours: bool) -> None:
    assert is_host_pod(a_pod(**changes)) is ours


def test_a_pod_without_node_runs_nowhere() -> None:
    pod = a_pod()
    del pod["spec"]["nodeName"]

    assert not is_host_pod(pod)
