"""The little of an AWS account that an instance needs to join: a cluster, a node role, user data."""

from __future__ import annotations

import base64
import json
from typing import Any

import boto3

from sandbox.machine import Sandbox

__all__ = ["Account"]

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)


class Account:
    """An account on a running sandbox, with the EKS cluster `demo`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        known = {
            "endpoint_url": sandbox.aws_endpoint,
            "region_name": sandbox.environment["AWS_REGION"],
            "aws_access_key_id": "sandbox",
            "aws_secret_access_key": "sandbox",
        }
        self.ec2: Any = boto3.client("ec2", **known)
        self.eks: Any = boto3.client("eks", **known)
        self.iam: Any = boto3.client("iam", **known)
        self.subnets = [s["SubnetId"] for s in self.ec2.describe_subnets()["Subnets"]]
        role = self.node_role("node")
        self.eks.create_cluster(
            name="demo",
            roleArn=role,
            resourcesVpcConfig={"subnetIds": self.subnets},
            accessConfig={"authenticationMode": "API"},
        )
        self.eks.create_access_entry(clusterName="demo", principalArn=role, type="EC2_LINUX")

    def node_role(self, name: str) -> str:
        """Make a role with an instance profile of the same name."""
        role = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
        self.iam.create_instance_profile(InstanceProfileName=name)
        self.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        return str(role)

    def run(self, *, labels: str = "team=a", profile: str = "node", count: int = 1) -> list[str]:
        """Start instances that would join; returns their ids."""
        image = self.ec2.describe_images(
            Owners=["amazon"],
            Filters=[{"Name": "name", "Values": ["amazon-eks-node-al2023-x86_64-standard-1.34-*"]}],
        )["Images"][0]["ImageId"]
        answer = self.ec2.run_instances(
            ImageId=image,
            InstanceType="m6i.large",
            MinCount=count,
            MaxCount=count,
            SubnetId=self.subnets[0],
            UserData=self.user_data(labels),
            IamInstanceProfile={"Name": profile},
        )
        return [i["InstanceId"] for i in answer["Instances"]]

    def user_data(self, labels: str) -> str:
        """Return a NodeConfig for this cluster."""
        access = self.sandbox.api.access
        return json.dumps(
            {
                "apiVersion": "node.eks.aws/v1alpha1",
                "kind": "NodeConfig",
                "spec": {
                    "cluster": {
                        "name": "demo",
                        "apiServerEndpoint": access.server,
                        "certificateAuthority": base64.b64encode(access.authority).decode(),
                        "cidr": "10.100.0.0/16",
                    },
                    "kubelet": {
                        "config": {
                            "maxPods": 58,
                            "registerWithTaints": [
                                {"key": "dedicated", "value": "a", "effect": "NoSchedule"}
                            ],
                        },
                        "flags": [f"--node-labels={labels}"],
                    },
                },
            }
        )
