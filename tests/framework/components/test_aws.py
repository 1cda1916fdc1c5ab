"""Cluster, roles, queue: what is declared in the account."""

from __future__ import annotations

import json

import pytest

from framework.components import (
    Cluster,
    ClusterArgs,
    ControllerIdentity,
    ControllerIdentityArgs,
    FargateCapacity,
    FargateCapacityArgs,
    FirstCapacity,
    FirstCapacityArgs,
    InterruptionQueue,
    InterruptionQueueArgs,
    Irsa,
    NodeRole,
    NodeRoleArgs,
    SpotRole,
    SpotRoleArgs,
)
from framework.components.role_names import RoleNameTooLong
from framework.iam import Scope, controller_policies
from tests.framework.components.conftest import Declare
from tests.framework.components.recorder import Recorder

NODE_ROLE = "arn:aws:iam::123456789012:role/KarpenterNodeRole-demo"
QUEUE = "arn:aws:sqs:eu-west-2:123456789012:demo"


def an_identity(**changes: object) -> ControllerIdentity:
    given: dict[str, object] = {
        "cluster_name": "demo",
        "cluster": "demo",
        "partition": "aws",
        "region": "eu-west-2",
        "account": "123456789012",
        "node_role_arn": NODE_ROLE,
        "queue_arn": QUEUE,
        **changes,
    }
    return ControllerIdentity("controller", ControllerIdentityArgs(**given))  # type: ignore[arg-type]


def a_cluster(**changes: object) -> Cluster:
    args = ClusterArgs(  # type: ignore[arg-type]
        cluster_name="demo",
        partition="aws",
        kubernetes_version="1.34",
        subnet_ids=["subnet-a", "subnet-b"],
        admin_principals={"ops": "arn:aws:iam::123456789012:role/ops"},
        **changes,
    )
    return Cluster("cluster", args)


def test_the_cluster_knows_its_callers_by_access_entries_alone(declare: Declare) -> None:
    cluster = declare(a_cluster).one("Cluster")

    assert cluster.inputs["accessConfig"] == {
        "authenticationMode": "API",
        "bootstrapClusterCreatorAdminPermissions": True,
    }


def test_exactly_one_security_group_carries_the_discovery_tag(declare: Declare) -> None:
    recorder = declare(a_cluster)

    assert [tag.inputs for tag in recorder.of("Tag")] == [
        {"resourceId": "sg-cluster", "key": "karpenter.sh/discovery", "value": "demo"}
    ]


def test_logs_are_kept_for_a_while_and_go_with_the_stack(declare: Declare) -> None:
    group = declare(a_cluster).one("LogGroup")

    assert (group.inputs["name"], group.inputs["retentionInDays"]) == ("/aws/eks/demo/cluster", 30)


def test_an_administrator_gets_entry_and_policy(declare: Declare) -> None:
    recorder = declare(a_cluster)

    policy = recorder.one("AccessPolicyAssociation").inputs
    assert policy["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert policy["principalArn"] == recorder.one("AccessEntry").inputs["principalArn"]


def test_the_node_role_may_join_and_nothing_more(declare: Declare) -> None:
    recorder = declare(
        lambda: NodeRole("node", NodeRoleArgs(cluster_name="demo", cluster="demo", partition="aws"))
    )

    entry = recorder.one("AccessEntry").inputs
    assert entry["type"] == "EC2_LINUX"
    assert {"kubernetesGroups", "policyArn"}.isdisjoint(entry)
    assert recorder.one("Role").inputs["name"] == "KarpenterNodeRole-demo"
    assert recorder.of("InstanceProfile") == []


def test_the_node_role_carries_the_four_policies(declare: Declare) -> None:
    recorder = declare(
        lambda: NodeRole("node", NodeRoleArgs(cluster_name="demo", cluster="demo", partition="aws-cn"))
    )

    assert sorted(r.inputs["policyArn"] for r in recorder.of("RolePolicyAttachment")) == [
        "arn:aws-cn:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
        "arn:aws-cn:iam::aws:policy/AmazonEKSWorkerNodePolicy",
        "arn:aws-cn:iam::aws:policy/AmazonEKS_CNI_Policy",
        "arn:aws-cn:iam::aws:policy/AmazonSSMManagedInstanceCore",
    ]


def test_a_cluster_name_too_long_for_the_role_says_what_to_set() -> None:
    from framework.components.role_names import node_role_name

    with pytest.raises(RoleNameTooLong, match="set charpente:nodeRoleName"):
        node_role_name("c" * 60)


def test_the_controller_has_the_generated_policies(declare: Declare) -> None:
    recorder = declare(an_identity)

    scope = Scope(
        region="eu-west-2", account="123456789012", cluster="demo", node_role_arn=NODE_ROLE, queue_arn=QUEUE
    )
    found = {r.inputs["name"]: json.loads(r.inputs["policy"]) for r in recorder.of("Policy")}
    assert found == {
        f"KarpenterController{part}-demo": document.to_wire()
        for part, document in controller_policies(scope).items()
    }
    assert len(recorder.of("RolePolicyAttachment")) == 5


def test_without_a_queue_there_are_four_policies(declare: Declare) -> None:
    assert len(declare(lambda: an_identity(queue_arn=None)).of("Policy")) == 4


def test_pod_identity_ties_the_role_to_the_service_account(declare: Declare) -> None:
    association = declare(an_identity).one("PodIdentityAssociation").inputs

    assert (association["namespace"], association["serviceAccount"]) == ("kube-system", "karpenter")


def test_irsa_needs_no_association(declare: Declare) -> None:
    irsa = Irsa(provider_arn="arn:aws:iam::1:oidc-provider/x", issuer="https://x")

    recorder = declare(lambda: an_identity(irsa=irsa))

    trust = json.loads(recorder.one("Role").inputs["assumeRolePolicy"])
    assert trust["Statement"][0]["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert recorder.of("PodIdentityAssociation") == []


def test_every_kind_of_notice_reaches_the_queue(declare: Declare) -> None:
    recorder = declare(lambda: InterruptionQueue("interruption", InterruptionQueueArgs(queue_name="demo")))

    patterns = [json.loads(rule.inputs["eventPattern"]) for rule in recorder.of("EventRule")]
    assert sorted(pattern["detail-type"][0] for pattern in patterns) == [
        "AWS Health Event",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Spot Instance Interruption Warning",
    ]
    assert {t.inputs["targetId"] for t in recorder.of("EventTarget")} == {"KarpenterInterruptionQueueTarget"}


def test_the_queue_is_encrypted_and_forgets_after_five_minutes(declare: Declare) -> None:
    queue = declare(lambda: InterruptionQueue("interruption", InterruptionQueueArgs(queue_name="demo"))).one(
        "Queue"
    )

    assert queue.inputs["sqsManagedSseEnabled"] is True
    assert queue.inputs["messageRetentionSeconds"] == 300


def test_the_first_nodes_are_for_critical_addons(declare: Declare) -> None:
    args = FirstCapacityArgs(cluster="demo", partition="aws", subnet_ids=["subnet-a"])

    group = declare(lambda: FirstCapacity("first", args)).one("NodeGroup").inputs

    assert group["taints"] == [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}]
    assert group["scalingConfig"] == {"minSize": 2, "desiredSize": 2, "maxSize": 3}


def test_fargate_runs_the_controller_and_the_clusters_dns(declare: Declare) -> None:
    args = FargateCapacityArgs(cluster="demo", partition="aws", subnet_ids=["subnet-a"])

    recorder = declare(lambda: FargateCapacity("first", args))

    assert [each["labels"] for each in recorder.one("FargateProfile").inputs["selectors"]] == [
        {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"},
        {"k8s-app": "kube-dns"},
    ]
    assert "eks-fargate-pods.amazonaws.com" in recorder.one("Role").inputs["assumeRolePolicy"]


@pytest.mark.parametrize(
    ("given", "keys", "used"),
    [(None, 0, None), ("create", 1, "arn:aws:mock:::cluster-secrets"), ("arn:aws:kms:x", 0, "arn:aws:kms:x")],
)
def test_secrets_are_encrypted_with_the_key_that_is_asked_for(
    declare: Declare, given: str | None, keys: int, used: str | None
) -> None:
    recorder = declare(lambda: a_cluster(secrets_key=given))

    found = recorder.one("Cluster").inputs.get("encryptionConfig")
    assert (found and found["provider"]["keyArn"], len(recorder.of("Key"))) == (used, keys)


def test_a_windows_role_with_a_profile_when_asked(declare: Declare) -> None:
    args = NodeRoleArgs(
        cluster_name="demo", cluster="demo", partition="aws", kind="EC2_WINDOWS", instance_profile=True
    )

    recorder = declare(lambda: NodeRole("node", args))

    assert recorder.one("AccessEntry").inputs["type"] == "EC2_WINDOWS"
    profile = recorder.one("InstanceProfile").inputs
    assert (profile["name"], profile["role"]) == (
        "KarpenterNodeInstanceProfile-demo",
        "KarpenterNodeRole-demo",
    )


@pytest.mark.parametrize(
    ("roles", "made"),
    [
        ({}, 1),
        ({"AWSServiceRoleForEC2Spot": {"charpente:cluster": "demo"}}, 1),
        ({"AWSServiceRoleForEC2Spot": {"charpente:cluster": "other"}}, 0),
        ({"AWSServiceRoleForEC2Spot": {}}, 0),
    ],
    ids=["missing", "made by this stack", "made by another", "made by hand"],
)
def test_the_spot_role_is_made_only_where_it_is_missing(
    declare: Declare, recorder: Recorder, roles: dict[str, dict[str, str]], made: int
) -> None:
    recorder.roles = roles

    declare(lambda: SpotRole("spot", SpotRoleArgs(cluster_name="demo")))

    assert len(recorder.of("ServiceLinkedRole")) == made
