"""Who may assume the roles, what the node role may do, and who may write to the queue.

Called by the components that make roles and the queue. Owns the documents of spec
aws/iam-and-bootstrap sections 1 and 2 and aws/interruption section 1.
"""

from __future__ import annotations

from framework.iam.documents import Document, Effect, Statement
from framework.iam.scope import service_principal

NODE_POLICIES = (
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
"""Policies of AWS that a node's role carries."""


def _assumed_by(service: str, *actions: str) -> Document:
    return Document(
        statements=(Statement(principals={"Service": (service,)}, actions=actions),),
    )


def node_trust(partition: str) -> Document:
    """Instances may take the node role."""
    return _assumed_by(service_principal("ec2", partition), "sts:AssumeRole")


def cluster_trust() -> Document:
    """The EKS control plane may take the cluster role."""
    return _assumed_by("eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")


def fargate_trust() -> Document:
    """Fargate may take the role with which it pulls images and writes logs."""
    return _assumed_by("eks-fargate-pods.amazonaws.com", "sts:AssumeRole")


def pod_identity_trust() -> Document:
    """Pods of the cluster may take the role through EKS Pod Identity."""
    return _assumed_by("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")


def irsa_trust(*, provider_arn: str, issuer: str, namespace: str, service_account: str) -> Document:
    """One service account may take the role through the cluster's OIDC provider.

    `issuer` is the issuer's URL, with or without `https://`.
    """
    host = issuer.removeprefix("https://")
    return Document(
        statements=(
            Statement(
                principals={"Federated": (provider_arn,)},
                actions=("sts:AssumeRoleWithWebIdentity",),
                conditions={
                    "StringEquals": {
                        f"{host}:aud": ("sts.amazonaws.com",),
                        f"{host}:sub": (f"system:serviceaccount:{namespace}:{service_account}",),
                    }
                },
            ),
        )
    )


def queue_policy(queue_arn: str) -> Document:
    """EventBridge may send to the interruption queue; nobody may use it without TLS."""
    return Document(
        id="EC2InterruptionPolicy",
        statements=(
            Statement(
                principals={"Service": ("events.amazonaws.com", "sqs.amazonaws.com")},
                actions=("sqs:SendMessage",),
                resources=(queue_arn,),
            ),
            Statement(
                sid="DenyHTTP",
                effect=Effect.DENY,
                principals={"*": ("*",)},
                actions=("sqs:*",),
                resources=(queue_arn,),
                conditions={"Bool": {"aws:SecureTransport": ("false",)}},
            ),
        ),
    )
