"""The controller's roles and their bindings in the cluster.

Called by `framework.components.controller`. Owns the objects; the rules are in
`rbac_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi
import pulumi_kubernetes as k8s

from framework.components import rbac_rules
from framework.components.rbac_rules import Rule

_RBAC = "rbac.authorization.k8s.io"
_DNS_NAMESPACE = "kube-system"


@attrs.frozen(kw_only=True)
class RbacArgs:
    """Whom the roles are for."""

    name: str
    namespace: str
    service_account: str
    labels: Mapping[str, str]


class Rbac(pulumi.ComponentResource):
    """Roles and bindings. Has no outputs; `resources` is for `depends_on`."""

    resources: Sequence[pulumi.Resource]

    def __init__(self, name: str, args: RbacArgs, opts: pulumi.ResourceOptions) -> None:
        """Declare roles and bindings."""
        super().__init__("charpente:kubernetes:Rbac", name, None, opts)
        self._name, self._args = name, args
        core = [*rbac_rules.CORE_READ, *rbac_rules.CORE_WRITE]
        self.resources = (
            *self._cluster_role("core", core),
            *self._cluster_role("aws", rbac_rules.AWS),
            *self._role("leases", args.namespace, rbac_rules.LEASES),
            *self._role("dns", _DNS_NAMESPACE, rbac_rules.CLUSTER_DNS),
        )
        self._administrators()
        self.register_outputs({})

    def _options(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)

    def _metadata(self, suffix: str, namespace: str | None = None) -> dict[str, object]:
        metadata: dict[str, object] = {
            "name": f"{self._args.name}-{suffix}",
            "labels": dict(self._args.labels),
        }
        return {**metadata, "namespace": namespace} if namespace else metadata

    def _subject(self) -> dict[str, str]:
        return {
            "kind": "ServiceAccount",
            "name": self._args.service_account,
            "namespace": self._args.namespace,
        }

    def _reference(self, kind: str, suffix: str) -> dict[str, str]:
        return {"apiGroup": _RBAC, "kind": kind, "name": f"{self._args.name}-{suffix}"}

    def _cluster_role(self, suffix: str, rules: Sequence[Rule]) -> tuple[pulumi.Resource, ...]:
        role = k8s.rbac.v1.ClusterRole(
            f"{self._name}-{suffix}",
            metadata=self._metadata(suffix),
            rules=[rule.to_wire() for rule in rules],
            opts=self._options(),
        )
        binding = k8s.rbac.v1.ClusterRoleBinding(
            f"{self._name}-{suffix}",
            metadata=self._metadata(suffix),
            role_ref=self._reference("ClusterRole", suffix),
            subjects=[self._subject()],
            opts=self._options(),
        )
        return role, binding

    def _role(self, suffix: str, namespace: str, rules: Sequence[Rule]) -> tuple[pulumi.Resource, ...]:
        role = k8s.rbac.v1.Role(
            f"{self._name}-{suffix}",
            metadata=self._metadata(suffix, namespace),
            rules=[rule.to_wire() for rule in rules],
            opts=self._options(),
        )
        binding = k8s.rbac.v1.RoleBinding(
            f"{self._name}-{suffix}",
            metadata=self._metadata(suffix, namespace),
            role_ref=self._reference("Role", suffix),
            subjects=[self._subject()],
            opts=self._options(),
        )
        return role, binding

    def _administrators(self) -> None:
        metadata = self._metadata("admin")
        aggregated = {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}
        k8s.rbac.v1.ClusterRole(
            f"{self._name}-admin",
            metadata={**metadata, "labels": {**self._args.labels, **aggregated}},
            rules=[rule.to_wire() for rule in rbac_rules.ADMINISTRATORS],
            opts=self._options(),
        )
