"""Controller, definitions, pools: what is declared in the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from framework.components import Controller, ControllerArgs, ControllerSettings, Crds, Pools, PoolsArgs
from framework.components.deployment import PodArgs, pod_spec
from framework.components.kubeconfig import TokenCommand, kubeconfig
from framework.components.pools import InvalidManifest, Manifest, checked
from framework.components.rbac_rules import AWS, CLUSTER_DNS, CORE_READ, CORE_WRITE, LEASES
from tests.framework.components.conftest import Declare

CLASS: Mapping[str, Any] = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "KarpenterNodeRole-demo",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
    },
}


def a_pod(**environment: str) -> dict[str, Any]:
    args = PodArgs(
        name="karpenter",
        namespace="kube-system",
        service_account="karpenter",
        image="charpente:test",
        environment=environment,
    )
    return pod_spec(args)


def a_controller(**changes: Any) -> Controller:
    given = {"cluster_name": "demo", "image": "charpente:test", "version": "1", "region": "eu-west-2"}
    return Controller("karpenter", ControllerArgs(**given, **changes), pulumi.ResourceOptions())


def test_the_container_is_not_root_and_writes_nowhere() -> None:
    context = a_pod()["containers"][0]["securityContext"]

    assert (context["runAsUser"], context["readOnlyRootFilesystem"], context["capabilities"]) == (
        65532,
        True,
        {"drop": ["ALL"]},
    )


def test_the_controller_never_runs_on_nodes_it_manages() -> None:
    terms = a_pod()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert terms["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
    ]


def test_the_environment_is_sorted_and_texts() -> None:
    env = a_pod(LOG_LEVEL="debug", CLUSTER_NAME="demo")["containers"][0]["env"]

    assert env[:2] == [
        {"name": "CLUSTER_NAME", "value": "demo"},
        {"name": "LOG_LEVEL", "value": "debug"},
    ]


def test_a_setting_that_is_false_is_passed_on() -> None:
    environment = ControllerSettings(ignore_dra_requests=False, reserved_enis=1).environment()

    assert (environment["IGNORE_DRA_REQUESTS"], environment["RESERVED_ENIS"]) == ("false", "1")


def test_a_gate_keeps_the_others_at_their_defaults() -> None:
    gates = ControllerSettings(feature_gates={"NodeRepair": True}).environment()["FEATURE_GATES"]

    assert gates == (
        "NodeOverlay=false,NodeRepair=true,ReservedCapacity=true,SpotToSpotConsolidation=false,StaticCapacity=false"
    )


def test_nobody_gets_secrets_or_configmaps() -> None:
    rules = [*CORE_READ, *CORE_WRITE, *AWS, *LEASES, *CLUSTER_DNS]

    assert {r for rule in rules for r in rule.resources}.isdisjoint({"secrets", "configmaps", "*"})


def test_the_lease_is_the_only_one_it_may_write() -> None:
    (write,) = [rule for rule in LEASES if "patch" in rule.verbs]

    assert write.names == ("karpenter-leader-election",)


def test_the_controller_is_two_replicas_with_a_budget(declare: Declare) -> None:
    recorder = declare(a_controller)

    deployment = recorder.one("Deployment").inputs
    assert deployment["spec"]["replicas"] == 2
    assert recorder.one("PodDisruptionBudget").inputs["spec"]["maxUnavailable"] == 1
    assert deployment["metadata"]["namespace"] == "kube-system"


def test_others_reach_metrics_and_probes_only(declare: Declare) -> None:
    spec = declare(a_controller).one("NetworkPolicy").inputs["spec"]

    assert [port["port"] for rule in spec["ingress"] for port in rule["ports"]] == [8080, 8081]


@pytest.mark.parametrize(("asked", "monitors"), [(False, 0), (True, 1)])
def test_a_service_monitor_is_declared_where_its_kind_is_there(
    declare: Declare, asked: bool, monitors: int
) -> None:
    recorder = declare(lambda: a_controller(service_monitor=asked))

    assert len(recorder.of("ServiceMonitor")) == monitors


def test_irsa_annotates_the_service_account(declare: Declare) -> None:
    account = declare(lambda: a_controller(irsa_role_arn="arn:aws:iam::1:role/x")).one("ServiceAccount")

    assert account.inputs["metadata"]["annotations"] == {
        "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"
    }


def test_every_definition_is_a_resource(declare: Declare) -> None:
    recorder = declare(lambda: Crds("crds", pulumi.ResourceOptions()))

    names = {r.inputs["metadata"]["name"] for r in recorder.of("CustomResourceDefinition")}
    assert {"nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"} <= names


def test_a_gate_that_is_on_brings_its_definitions(declare: Declare) -> None:
    gates = frozenset({"CapacityBuffer"})

    recorder = declare(lambda: Crds("crds", pulumi.ResourceOptions(), gates))

    names = {r.inputs["metadata"]["name"] for r in recorder.of("CustomResourceDefinition")}
    assert "capacitybuffers.autoscaling.x-k8s.io" in names


def test_a_pool_is_sent_as_it_is_written(declare: Declare) -> None:
    manifest = checked(CLASS, "class.yaml")

    recorder = declare(lambda: Pools("pools", PoolsArgs(manifests=[manifest]), pulumi.ResourceOptions()))

    found = recorder.one("EC2NodeClass")
    assert (found.name, found.inputs["spec"]) == ("ec2nodeclass-default", CLASS["spec"])


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "is not a pool's kind"),
        ({**CLASS, "metadata": {}}, "has no metadata.name"),
        ({**CLASS, "spec": {**CLASS["spec"], "amiSelectorTerms": "x"}}, "amiSelectorTerms"),
    ],
    ids=["kind", "name", "field"],
)
def test_a_wrong_manifest_names_its_file(raw: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(InvalidManifest, match=rf"^pool\.yaml: .*{problem}"):
        checked(raw, "pool.yaml")


def test_the_kubeconfig_holds_a_command_and_no_token() -> None:
    command = TokenCommand.AWS.arguments("demo", "eu-west-2")

    found = json.loads(
        kubeconfig(name="demo", endpoint="https://x", certificate_authority="Q0E=", command=command)
    )

    user = found["users"][0]["user"]
    assert list(user) == ["exec"]
    assert [user["exec"]["command"], *user["exec"]["args"][:2]] == ["aws", "eks", "get-token"]


def test_a_preview_with_an_unknown_endpoint_reaches_the_pools(declare: Declare) -> None:
    def program() -> None:
        provider = k8s.Provider("kubernetes", kubeconfig=pulumi.Output.from_input("{}"))
        manifest = Manifest(raw=CLASS, source="x")
        Pools("pools", PoolsArgs(manifests=[manifest]), pulumi.ResourceOptions(provider=provider))

    assert declare(program, preview=True).one("EC2NodeClass").name == "ec2nodeclass-default"
