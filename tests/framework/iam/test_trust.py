from __future__ import annotations

from framework.iam.lint import wildcards
from framework.iam.trust import cluster_trust, irsa_trust, node_trust, pod_identity_trust, queue_policy

QUEUE = "arn:aws:sqs:eu-west-2:123456789012:demo"


def test_instances_take_the_node_role_by_the_partitions_own_principal() -> None:
    principals = [node_trust(p).statements[0].principals["Service"] for p in ("aws", "aws-cn")]

    assert principals == [("ec2.amazonaws.com",), ("ec2.amazonaws.com.cn",)]


def test_pod_identity_may_tag_its_session() -> None:
    assert pod_identity_trust().to_wire()["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ]


def test_irsa_names_the_one_service_account() -> None:
    document = irsa_trust(
        provider_arn="arn:aws:iam::123456789012:oidc-provider/oidc.eks/id/X",
        issuer="https://oidc.eks/id/X",
        namespace="kube-system",
        service_account="karpenter",
    )

    assert document.to_wire()["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.eks/id/X"},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {
                "StringEquals": {
                    "oidc.eks/id/X:aud": "sts.amazonaws.com",
                    "oidc.eks/id/X:sub": "system:serviceaccount:kube-system:karpenter",
                }
            },
        }
    ]


def test_the_queue_takes_events_and_refuses_plain_http() -> None:
    assert queue_policy(QUEUE).to_wire() == {
        "Version": "2012-10-17",
        "Id": "EC2InterruptionPolicy",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
                "Action": "sqs:SendMessage",
                "Resource": QUEUE,
            },
            {
                "Sid": "DenyHTTP",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": QUEUE,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ],
    }


def test_no_trust_document_lets_anyone_in() -> None:
    documents = (node_trust("aws"), cluster_trust(), pod_identity_trust(), queue_policy(QUEUE))

    assert [finding for document in documents for finding in wildcards(document)] == []
