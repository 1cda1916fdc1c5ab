"""One running platform, and the few verbs that the end-to-end tests need.

Asserts on the API server's and AWS's state only; no test reads a log.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import attrs
import boto3

from framework.api import labels
from sandbox.aws.control import Control
from sandbox.kubernetes import Api, ApiError, Object
from sandbox.machine import Sandbox
from sandbox.workloads import Workload

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
SYSTEM = "/api/v1/namespaces/kube-system/pods"
POLL_S = 0.2


@attrs.frozen
class World:
    sandbox: Sandbox
    own_pools: frozenset[str]
    """Pools of the stack, which outlive each test."""

    @property
    def api(self) -> Api:
        return self.sandbox.api

    @property
    def control(self) -> Control:
        return Control(self.sandbox.aws_endpoint)

    @property
    def ec2(self) -> Any:
        return boto3.client(
            "ec2",
            endpoint_url=self.sandbox.aws_endpoint,
            region_name=self.sandbox.environment["AWS_REGION"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def wait(self, what: str, happened: Callable[[], object], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, f"{what}: not within {seconds} s"
            time.sleep(POLL_S)

    def deploy(self, workload: Workload) -> None:
        self.api.create(DEPLOYMENTS, workload.manifest())

    def scale(self, name: str, replicas: int) -> None:
        self.api.merge(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": replicas}})

    def pods(self, name: str) -> list[Object]:
        return self.api.list(PODS, labelSelector=f"app={name}")[0]

    def running(self, name: str) -> int:
        return sum(
            pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
            for pod in self.pods(name)
        )

    def wait_running(self, workload: Workload, seconds: float = 90) -> None:
        self.wait(
            f"{workload.replicas} pods of {workload.name} running",
            lambda: self.running(workload.name) == workload.replicas,
            seconds,
        )

    def claims(self) -> list[Object]:
        return self.api.list(CLAIMS)[0]

    def nodes(self) -> list[Object]:
        """Nodes of claims; those of the first capacity are left out."""
        return self.api.list(NODES, labelSelector=labels.NODEPOOL)[0]

    def launched(self) -> set[str]:
        """Ids of the live instances that carry a pool's tag, whoever knows of them."""
        pages = self.ec2.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": "tag-key", "Values": [labels.NODEPOOL]},
                {"Name": "instance-state-name", "Values": ["pending", "running"]},
            ]
        )
        return {
            instance["InstanceId"]
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        }

    def events(self, reason: str) -> list[Object]:
        return self.api.list("/api/v1/events", fieldSelector=f"reason={reason}")[0]

    def controller_pids(self) -> dict[str, int]:
        """Process ids of the controller's running pods by pod name."""
        found = self.sandbox.processes.all()
        return {
            running.name.removeprefix("pod-"): running.pid
            for running in found
            if running.name.startswith("pod-") and running.alive
        }

    def leader(self) -> str:
        lease = self.api.get(
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election"
        )
        return str(lease["spec"].get("holderIdentity") or "")

    def kill_leader(self) -> None:
        """Kill the leading controller process as a machine failure would: no chance to clean up."""
        holder = self.leader()
        pid = next(pid for name, pid in self.controller_pids().items() if holder.startswith(name))
        os.kill(pid, signal.SIGKILL)

    def settle(self) -> None:
        """Remove what a test made and wait until the platform is as the stack made it."""
        self.control.clear()
        for deployment in self.api.list(DEPLOYMENTS)[0]:
            self._delete(f"{DEPLOYMENTS}/{deployment['metadata']['name']}")
        for pool in self.api.list(POOLS)[0]:
            if pool["metadata"]["name"] not in self.own_pools:
                self._delete(f"{POOLS}/{pool['metadata']['name']}")
        for claim in self.claims():  # at once, instead of when the controller finds them empty
            self._delete(f"{CLAIMS}/{claim['metadata']['name']}")
        self.wait("no claim left", lambda: not self.claims(), 120)
        self.wait("no node left", lambda: not self.nodes(), 60)
        self.wait("no instance left", lambda: not self.launched(), 60)

    def _delete(self, path: str) -> None:
        try:
            self.api.delete(path)
        except ApiError as exc:
            if exc.status != 404:
                raise
