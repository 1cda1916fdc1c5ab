"""The EKS cluster: control plane, who may come in, core add-ons.

Called by the programs in `stacks/`. Owns the cluster's role, access by entries
instead of a ConfigMap, the OIDC provider and the one security group that carries the
discovery tag (spec aws/iam-and-bootstrap sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi
import pulumi_aws as aws

from framework.api import labels
from framework.iam.trust import cluster_trust

_CLUSTER_POLICY = "AmazonEKSClusterPolicy"
_ADMIN_POLICY = "arn:{partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
CREATE_KEY = "create"
_KEY_DELETION_DAYS = 7
_LOG_TYPES = ("api", "audit", "authenticator")
_ADDONS_BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""Add-ons that nodes need to become ready; they are DaemonSets and wait for no node."""


@attrs.frozen(kw_only=True)
class ClusterArgs:
    """What a cluster is made from."""

    cluster_name: str
    partition: str
    kubernetes_version: str
    subnet_ids: pulumi.Input[Sequence[str]]
    """Where the control plane puts its interfaces, in two zones or more."""
    public_access_cidrs: Sequence[str] = ("0.0.0.0/0",)
    """Who may reach the public endpoint; empty for a private endpoint alone."""
    admin_principals: Mapping[str, str] = attrs.field(factory=dict)
    """Short name → ARN of those who administer the cluster besides its creator."""
    secrets_key: str | None = None
    """KMS key with which Secrets are encrypted: an ARN, `create`, or None for AWS's own."""
    log_retention_days: int | None = 30
    """How long control plane logs are kept; None switches them off."""
    tags: Mapping[str, str] = attrs.field(factory=dict)


class Cluster(pulumi.ComponentResource):
    """An EKS cluster; its outputs are the attributes below."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    certificate_authority: pulumi.Output[str]
    """Base64 of the PEM."""
    security_group_id: pulumi.Output[str]
    oidc_issuer: pulumi.Output[str]
    oidc_provider_arn: pulumi.Output[str]
    control_plane: aws.eks.Cluster
    """The resource itself, for `deleted_with` and `depends_on`."""
    addons: Sequence[aws.eks.Addon]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the cluster."""
        super().__init__("charpente:aws:Cluster", name, None, opts)
        self._name, self._args = name, args
        role, attachment = self._role()
        before: list[pulumi.Resource] = [attachment]
        if args.log_retention_days is not None:
            before.append(self._log_group(args.log_retention_days))
        self.control_plane = self._control_plane(role, before)
        self._discovery_tag()
        self._administrators()
        self.addons = [self.addon(addon) for addon in _ADDONS_BEFORE_NODES]
        self._outputs()

    def _role(self) -> tuple[aws.iam.Role, aws.iam.RolePolicyAttachment]:
        role = aws.iam.Role(
            f"{self._name}-role",
            assume_role_policy=cluster_trust().to_json(),
            tags=dict(self._args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        attachment = aws.iam.RolePolicyAttachment(
            f"{self._name}-role-eks",
            role=role.name,
            policy_arn=f"arn:{self._args.partition}:iam::aws:policy/{_CLUSTER_POLICY}",
            opts=pulumi.ResourceOptions(parent=role),
        )
        return role, attachment

    def _log_group(self, retention_days: int) -> aws.cloudwatch.LogGroup:
        """EKS would make the group itself, keep logs for ever and leave it behind."""
        return aws.cloudwatch.LogGroup(
            f"{self._name}-logs",
            name=f"/aws/eks/{self._args.cluster_name}/cluster",
            retention_in_days=retention_days,
            tags=dict(self._args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _control_plane(self, role: aws.iam.Role, before: Sequence[pulumi.Resource]) -> aws.eks.Cluster:
        args = self._args
        public = bool(args.public_access_cidrs)
        key = self._secrets_key()
        return aws.eks.Cluster(
            f"{self._name}-control-plane",
            name=args.cluster_name,
            version=args.kubernetes_version,
            role_arn=role.arn,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=args.subnet_ids,
                endpoint_private_access=True,
                endpoint_public_access=public,
                public_access_cidrs=list(args.public_access_cidrs) if public else None,
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            encryption_config=None
            if key is None
            else aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=key), resources=["secrets"]
            ),
            bootstrap_self_managed_addons=False,
            enabled_cluster_log_types=list(_LOG_TYPES) if args.log_retention_days is not None else None,
            tags={**args.tags, labels.DISCOVERY_TAG: args.cluster_name},
            opts=pulumi.ResourceOptions(parent=self, depends_on=before),
        )

    def _secrets_key(self) -> pulumi.Input[str] | None:
        if self._args.secrets_key != CREATE_KEY:
            return self._args.secrets_key
        key = aws.kms.Key(
            f"{self._name}-secrets",
            description=f"Secrets of the EKS cluster {self._args.cluster_name}",
            enable_key_rotation=True,
            deletion_window_in_days=_KEY_DELETION_DAYS,
            tags=dict(self._args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        arn: pulumi.Output[str] = key.arn
        return arn

    def _discovery_tag(self) -> None:
        """Exactly one group carries the tag: the one EKS makes, which joins nodes and control plane."""
        aws.ec2.Tag(
            f"{self._name}-discovery",
            resource_id=self.control_plane.vpc_config.cluster_security_group_id,
            key=labels.DISCOVERY_TAG,
            value=self._args.cluster_name,
            opts=pulumi.ResourceOptions(parent=self.control_plane),
        )

    def _administrators(self) -> None:
        for short, principal in sorted(self._args.admin_principals.items()):
            entry = aws.eks.AccessEntry(
                f"{self._name}-admin-{short}",
                cluster_name=self.control_plane.name,
                principal_arn=principal,
                tags=dict(self._args.tags),
                opts=pulumi.ResourceOptions(parent=self.control_plane),
            )
            aws.eks.AccessPolicyAssociation(
                f"{self._name}-admin-{short}",
                cluster_name=self.control_plane.name,
                principal_arn=principal,
                policy_arn=_ADMIN_POLICY.format(partition=self._args.partition),
                access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
                opts=pulumi.ResourceOptions(parent=entry),
            )

    def addon(
        self, addon: str, depends_on: Sequence[pulumi.Resource] = (), settings: str | None = None
    ) -> aws.eks.Addon:
        """Have EKS install and keep a component; `depends_on` the nodes for one that needs them."""
        return aws.eks.Addon(
            f"{self._name}-{addon}",
            cluster_name=self.control_plane.name,
            addon_name=addon,
            configuration_values=settings,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="PRESERVE",
            tags=dict(self._args.tags),
            opts=pulumi.ResourceOptions(parent=self.control_plane, depends_on=list(depends_on)),
        )

    def _outputs(self) -> None:
        plane = self.control_plane
        self.name = plane.name
        self.arn = plane.arn
        self.endpoint = plane.endpoint
        self.certificate_authority = plane.certificate_authority.data
        self.security_group_id = plane.vpc_config.cluster_security_group_id
        self.oidc_issuer = plane.identities[0].oidcs[0].issuer
        provider = aws.iam.OpenIdConnectProvider(
            f"{self._name}-oidc",
            url=self.oidc_issuer,
            client_id_lists=["sts.amazonaws.com"],
            tags=dict(self._args.tags),
            opts=pulumi.ResourceOptions(parent=plane),
        )
        self.oidc_provider_arn = provider.arn
        self.register_outputs(
            {
                "name": self.name,
                "arn": self.arn,
                "endpoint": self.endpoint,
                "certificate_authority": self.certificate_authority,
                "security_group_id": self.security_group_id,
                "oidc_issuer": self.oidc_issuer,
                "oidc_provider_arn": self.oidc_provider_arn,
            }
        )
