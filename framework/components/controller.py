"""The controller in the cluster.

Called by the programs in `stacks/`. Owns the Deployment with its service account,
roles, disruption budget and metrics Service (spec aws/iam-and-bootstrap section 7).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pulumi
import pulumi_kubernetes as k8s

from framework.components.controller_settings import ControllerSettings
from framework.components.deployment import HEALTH_PORT, METRICS_PORT, SELECTOR, PodArgs, pod_spec
from framework.components.rbac import Rbac, RbacArgs

_REPLICAS = 2
_SKIP_AWAIT = "pulumi.com/skipAwait"
_ROLE_ANNOTATION = "eks.amazonaws.com/role-arn"


@attrs.frozen(kw_only=True)
class ControllerArgs:
    """What the controller is made from."""

    cluster_name: pulumi.Input[str]
    image: pulumi.Input[str]
    version: str
    cluster_endpoint: pulumi.Input[str] | None = None
    """None lets the controller ask EKS."""
    queue_name: pulumi.Input[str] | None = None
    irsa_role_arn: pulumi.Input[str] | None = None
    """None for pod identity, which needs no annotation."""
    region: str
    namespace: str = "kube-system"
    name: str = "karpenter"
    replicas: int = attrs.field(default=_REPLICAS, validator=attrs.validators.ge(1))
    settings: ControllerSettings = attrs.field(factory=ControllerSettings)
    service_monitor: bool = False
    """Whether Prometheus Operator's kinds are there, to be told what to scrape."""
    skip_await: bool = False
    """Go on without waiting until the replicas are ready."""


class Controller(pulumi.ComponentResource):
    """The controller. Outputs: `namespace`, `service_account`."""

    namespace: str
    service_account: str
    deployment: k8s.apps.v1.Deployment
    """For `depends_on`: pools go after it and are removed before it."""

    def __init__(self, name: str, args: ControllerArgs, opts: pulumi.ResourceOptions) -> None:
        """Declare the controller; `opts` must carry the Kubernetes provider."""
        super().__init__("charpente:kubernetes:Controller", name, None, opts)
        self._name, self._args = name, args
        self.namespace, self.service_account = args.namespace, args.name
        account = self._account()
        rbac = Rbac(
            f"{name}-rbac",
            RbacArgs(
                name=args.name,
                namespace=args.namespace,
                service_account=args.name,
                labels=self._labels(),
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self._disruption_budget()
        self._metrics_service()
        self._network_policy()
        if args.service_monitor:
            self._service_monitor()
        self.deployment = self._deployment([account, *rbac.resources])
        self.register_outputs({"namespace": self.namespace, "service_account": self.service_account})

    def _labels(self) -> dict[str, str]:
        return {
            **SELECTOR,
            "app.kubernetes.io/version": self._args.version,
            "app.kubernetes.io/managed-by": "pulumi",
        }

    def _metadata(self, annotations: Mapping[str, pulumi.Input[str]] | None = None) -> dict[str, object]:
        metadata: dict[str, object] = {
            "name": self._args.name,
            "namespace": self._args.namespace,
            "labels": self._labels(),
        }
        return {**metadata, "annotations": dict(annotations)} if annotations else metadata

    def _account(self) -> k8s.core.v1.ServiceAccount:
        role = self._args.irsa_role_arn
        return k8s.core.v1.ServiceAccount(
            f"{self._name}-account",
            metadata=self._metadata(None if role is None else {_ROLE_ANNOTATION: role}),
            automount_service_account_token=False,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _disruption_budget(self) -> None:
        k8s.policy.v1.PodDisruptionBudget(
            f"{self._name}-budget",
            metadata=self._metadata(),
            spec={"maxUnavailable": 1, "selector": {"matchLabels": dict(SELECTOR)}},
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _metrics_service(self) -> None:
        """Skips the await: a Service without ready endpoints is no failure here."""
        k8s.core.v1.Service(
            f"{self._name}-metrics",
            metadata=self._metadata({_SKIP_AWAIT: "true"}),
            spec={
                "type": "ClusterIP",
                "selector": dict(SELECTOR),
                "ports": [
                    {
                        "name": "http-metrics",
                        "port": METRICS_PORT,
                        "targetPort": "http-metrics",
                        "protocol": "TCP",
                    }
                ],
            },
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _network_policy(self) -> None:
        """Metrics and probes are all that others have to do with it."""
        k8s.networking.v1.NetworkPolicy(
            f"{self._name}-ingress",
            metadata=self._metadata(),
            spec={
                "podSelector": {"matchLabels": dict(SELECTOR)},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {"ports": [{"protocol": "TCP", "port": port} for port in (METRICS_PORT, HEALTH_PORT)]}
                ],
            },
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _service_monitor(self) -> None:
        k8s.apiextensions.CustomResource(
            f"{self._name}-monitor",
            api_version="monitoring.coreos.com/v1",
            kind="ServiceMonitor",
            metadata=self._metadata(),
            spec={
                "selector": {"matchLabels": dict(SELECTOR)},
                "namespaceSelector": {"matchNames": [self._args.namespace]},
                "endpoints": [{"port": "http-metrics", "path": "/metrics"}],
            },
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _environment(self) -> dict[str, pulumi.Input[str]]:
        args = self._args
        environment: dict[str, pulumi.Input[str]] = {
            **args.settings.environment(),
            "CLUSTER_NAME": args.cluster_name,
            "AWS_REGION": args.region,
        }
        if args.cluster_endpoint is not None:
            environment["CLUSTER_ENDPOINT"] = args.cluster_endpoint
        if args.queue_name is not None:
            environment["INTERRUPTION_QUEUE"] = args.queue_name
        return environment

    def _deployment(self, needs: list[pulumi.Resource]) -> k8s.apps.v1.Deployment:
        args = self._args
        pod = PodArgs(
            name=args.name,
            namespace=args.namespace,
            service_account=args.name,
            image=args.image,
            environment=self._environment(),
        )
        return k8s.apps.v1.Deployment(
            f"{self._name}-deployment",
            metadata=self._metadata({_SKIP_AWAIT: "true"} if args.skip_await else None),
            spec={
                "replicas": args.replicas,
                "revisionHistoryLimit": 10,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
                "selector": {"matchLabels": dict(SELECTOR)},
                "template": {"metadata": {"labels": self._labels()}, "spec": pod_spec(pod)},
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )
