"""The steps by which an EC2NodeClass is resolved, each setting its part of the status and one condition.

Called by the `nodeclass` reconciler. A step takes the draft and returns it further along; an AWS error
leaves the draft as it was and is handed back, so that one service's trouble does not hide another's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.cloud.aws import aliases
from controller.cloud.aws.errors import AwsError, AwsThrottled, AwsUnavailable
from controller.cloud.aws.gateway.records import SecurityGroupRecord, SubnetRecord
from controller.cloud.aws.launchplan import ClusterInput
from controller.cloud.aws.parts import Parts
from controller.cloud.aws.profiles import RoleNotFound
from controller.cloud.aws.selectors import to_status
from controller.cloud.aws.tags import bad_tag
from controller.cloud.aws.validation import DryRuns, Verdict
from controller.cluster import Mirror
from controller.kube import KubeError, Requeue
from framework.api import ConditionSet, ConditionStatus
from framework.api.condition_types import ClassCondition
from framework.api.ec2nodeclass import AmiFamily, EC2NodeClass, EC2NodeClassStatus, SecurityGroup, Subnet

__all__ = ["Draft", "Steps"]

_MINUTE: Final = timedelta(minutes=1)
_FIVE: Final = timedelta(minutes=5)
_TEN: Final = timedelta(minutes=10)
_AMIS: Final = ClassCondition.AMIS_READY
_SUBNETS: Final = ClassCondition.SUBNETS_READY
_GROUPS: Final = ClassCondition.SECURITY_GROUPS_READY
_PROFILE: Final = ClassCondition.INSTANCE_PROFILE_READY
_VALID: Final = ClassCondition.VALIDATION_SUCCEEDED
_RESERVATIONS: Final = ClassCondition.CAPACITY_RESERVATIONS_READY
_NEEDED: Final = (_AMIS, _PROFILE, _GROUPS, _SUBNETS)


@attrs.frozen(kw_only=True)
class Draft:
    """A class on its way to a new status."""

    node_class: EC2NodeClass
    conditions: ConditionSet
    warnings: tuple[tuple[str, str], ...] = ()
    """Event reasons and messages to publish."""
    vpc: str | None = None
    """The network that the class's subnets lie in."""

    def with_status(self, status: EC2NodeClassStatus) -> Draft:
        """Return the draft with another status."""
        return attrs.evolve(self, node_class=attrs.evolve(self.node_class, status=status))

    def warn(self, reason: str, message: str) -> Draft:
        """Return the draft with one more warning."""
        return attrs.evolve(self, warnings=(*self.warnings, (reason, message)))


Step = Callable[[Draft], Awaitable[tuple[Draft, Requeue]]]


class Steps:
    """Resolves classes."""

    def __init__(self, parts: Parts, dry_runs: DryRuns, mirror: Mirror, clock: Clock) -> None:
        """Take the parts that ask AWS."""
        self._parts = parts
        self._dry_runs = dry_runs
        self._mirror = mirror
        self._clock = clock

    async def run(self, draft: Draft) -> tuple[Draft, list[Requeue], list[Exception]]:
        """Run every step in order; return the draft, when to come back, and what went wrong."""
        wishes: list[Requeue] = []
        errors: list[Exception] = []
        steps: list[Step] = [self._images]
        if self._parts.settings.reserved_capacity:
            steps.append(self._reservations)
        steps += [self._subnets, self._groups, self._profile, self._validate]
        for step in steps:
            try:
                draft, wish = await step(draft)
                wishes.append(wish)
            except _Stopped as stopped:
                draft = stopped.draft
                errors.append(stopped.cause)
            except (AwsError, KubeError) as exc:
                errors.append(exc)
        return draft, wishes, errors

    def _true(self, draft: Draft, condition: str) -> Draft:
        now = self._clock.now()
        return attrs.evolve(draft, conditions=draft.conditions.set_true(condition, now=now))

    def _false(self, draft: Draft, condition: str, reason: str, message: str) -> Draft:
        changed = draft.conditions.set_false(condition, reason, message, now=self._clock.now())
        return attrs.evolve(draft, conditions=changed)

    def _unknown(self, draft: Draft, condition: str, reason: str, message: str) -> Draft:
        changed = draft.conditions.set_unknown(condition, reason, message, now=self._clock.now())
        return attrs.evolve(draft, conditions=changed)

    async def _images(self, draft: Draft) -> tuple[Draft, Requeue]:
        node_class = draft.node_class
        version = await self._parts.cluster.version()
        for term in node_class.spec.ami_selector_terms:
            problem = aliases.unsupported(term.alias_family or "", version)
            if problem:
                empty = draft.with_status(attrs.evolve(node_class.status, amis=()))
                message = f"spec.amiSelectorTerms: {problem}"
                return self._false(empty, _AMIS, "UnsupportedAlias", message), Requeue(_FIVE)
        try:
            amis = await self._parts.images.resolve(node_class, version)
        except AwsError as exc:
            if exc.code != "AliasNotFound":
                raise
            raise _Stopped(self._missing_alias(draft, exc), exc) from exc
        draft = draft.with_status(attrs.evolve(node_class.status, amis=amis))
        if not amis:
            message = "spec.amiSelectorTerms matches no image; check ids, names, tags and owner"
            return self._false(draft, _AMIS, "AMINotFound", message), Requeue(_MINUTE)
        return self._true(draft, _AMIS), Requeue(_FIVE)

    def _missing_alias(self, draft: Draft, error: AwsError) -> Draft:
        """Say what is missing, unless the class has images that still serve."""
        if draft.conditions.is_true(_AMIS):
            return draft
        message = f"spec.amiSelectorTerms: {error.message}; use @latest or a released version"
        return self._unknown(draft, _AMIS, "AliasNotFound", message)

    async def _reservations(self, draft: Draft) -> tuple[Draft, Requeue]:
        now = self._clock.now()
        records = await self._parts.selectors.reservations(draft.node_class)
        found = tuple(item for record in records if (item := to_status(record, now)) is not None)
        status = attrs.evolve(draft.node_class.status, capacity_reservations=found)
        ends = [record.end - now for record in records if record.end is not None]
        wish = max(min([_MINUTE, *ends]), timedelta())
        return self._true(draft.with_status(status), _RESERVATIONS), Requeue(wish)

    async def _subnets(self, draft: Draft) -> tuple[Draft, Requeue]:
        records = await self._parts.selectors.subnets(draft.node_class)
        draft, records = await self._in_one_vpc(draft, records)
        found = tuple(Subnet(id=item.id, zone=item.zone, zone_id=item.zone_id or None) for item in records)
        draft = draft.with_status(attrs.evolve(draft.node_class.status, subnets=found))
        if draft.vpc is None and found:
            message = (
                "spec.subnetSelectorTerms matches subnets of several VPCs "
                f"({', '.join(sorted({item.vpc for item in records}))}); select those of the cluster"
            )
            draft = draft.with_status(attrs.evolve(draft.node_class.status, subnets=()))
            return self._false(draft, _SUBNETS, "SubnetsInSeveralVPCs", message), Requeue(_MINUTE)
        if not found:
            message = "spec.subnetSelectorTerms matches no subnet of the cluster's VPC; check ids and tags"
            return self._false(draft, _SUBNETS, "SubnetsNotFound", message), Requeue(_MINUTE)
        return self._true(draft, _SUBNETS), Requeue(_MINUTE)

    async def _in_one_vpc(
        self, draft: Draft, records: tuple[SubnetRecord, ...]
    ) -> tuple[Draft, tuple[SubnetRecord, ...]]:
        """Drop subnets of other networks than the cluster's, with a warning.

        Without knowing the cluster's network a single one is taken for it; of several none is.
        """
        networks = {record.vpc for record in records}
        home = await self._parts.cluster.vpc()
        if home is None:
            return attrs.evolve(draft, vpc=networks.pop() if len(networks) == 1 else None), records
        strangers = [record for record in records if record.vpc != home]
        if strangers:
            text = ", ".join(f"{record.id} ({record.vpc})" for record in strangers)
            draft = draft.warn(
                "SubnetsInOtherVPC",
                f"spec.subnetSelectorTerms also matches {text}; not used, the cluster is in {home}",
            )
        kept = tuple(record for record in records if record.vpc == home)
        return attrs.evolve(draft, vpc=home), kept

    async def _groups(self, draft: Draft) -> tuple[Draft, Requeue]:
        records = await self._parts.selectors.security_groups(draft.node_class)
        draft, records = _groups_in_vpc(draft, records)
        found = tuple(SecurityGroup(id=item.id, name=item.name or None) for item in records)
        draft = draft.with_status(attrs.evolve(draft.node_class.status, security_groups=found))
        if not found:
            message = (
                "spec.securityGroupSelectorTerms matches no security group of the subnets' VPC; "
                "check ids, names and tags"
            )
            draft = self._false(draft, _GROUPS, "SecurityGroupsNotFound", message)
            return draft, Requeue(_MINUTE)
        return self._true(draft, _GROUPS), Requeue(_FIVE)

    async def _profile(self, draft: Draft) -> tuple[Draft, Requeue]:
        try:
            name = await self._parts.profiles.ensure(draft.node_class)
        except RoleNotFound as exc:
            role = draft.node_class.spec.role
            message = f"spec.role: the role {role!r} does not exist; create it or correct the name"
            raise _Stopped(self._false(draft, _PROFILE, "RoleNotFound", message), exc) from exc
        status = attrs.evolve(draft.node_class.status, instance_profile=name)
        return self._true(draft.with_status(status), _PROFILE), Requeue()

    async def _validate(self, draft: Draft) -> tuple[Draft, Requeue]:
        unmet = self._unmet(draft)
        if unmet is not None:
            return unmet, Requeue(_TEN)
        cluster = await self._cluster_input(draft)
        if isinstance(cluster, Verdict):
            return self._false(draft, _VALID, cluster.reason, cluster.message), Requeue(_TEN)
        name = draft.node_class.metadata.name
        pools = [
            pool
            for _, pool in sorted(self._mirror.pools.items())
            if pool.spec.template.spec.node_class_ref.name == name
        ]
        verdict = await self._dry_runs.judge(draft.node_class, pools, cluster)
        if verdict.ok:
            return self._true(draft, _VALID), Requeue(_TEN)
        return self._false(draft, _VALID, verdict.reason, verdict.message), Requeue(_TEN)

    def _unmet(self, draft: Draft) -> Draft | None:
        """Return the draft with what keeps validation from being tried, or None."""
        status = {kind: draft.conditions.get(kind) for kind in _NEEDED}
        reason, condition = "DependenciesNotReady", _VALID
        failed = [kind for kind, item in status.items() if item and item.status is ConditionStatus.FALSE]
        if failed:
            return self._false(draft, condition, reason, f"{', '.join(failed)} must be True first")
        waiting = [kind for kind in _NEEDED if not draft.conditions.is_true(kind)]
        if waiting:
            return self._unknown(draft, condition, reason, f"{', '.join(waiting)} must be True first")
        tag = bad_tag(draft.node_class.spec.tags)
        if tag is not None:
            message = f"spec.tags: {tag} is the controller's own tag; remove it"
            return self._false(draft, condition, "TagValidationFailed", message)
        return None

    async def _cluster_input(self, draft: Draft) -> ClusterInput | Verdict:
        facts, settings = self._parts.cluster, self._parts.settings
        cidr = None
        try:
            if draft.node_class.spec.resolved_ami_family is AmiFamily.AL2023:
                cidr = await facts.service_cidr()
            endpoint = await facts.endpoint()
        except (AwsThrottled, AwsUnavailable):
            raise
        except AwsError as exc:
            return Verdict(ok=False, reason="ClusterCIDRResolutionFailed", message=str(exc))
        return ClusterInput(
            name=facts.name,
            endpoint=endpoint,
            ca_bundle=facts.ca_bundle,
            region=self._parts.aws.region,
            service_cidr=cidr,
            dns_ip=facts.dns_ip,
            ipv6=facts.ipv6,
            reserved_capacity=settings.reserved_capacity,
        )


class _Stopped(Exception):
    """A step that failed but has something to tell in the status."""

    def __init__(self, draft: Draft, cause: Exception) -> None:
        super().__init__(str(cause))
        self.draft = draft
        self.cause = cause


def _groups_in_vpc(
    draft: Draft, records: Iterable[SecurityGroupRecord]
) -> tuple[Draft, tuple[SecurityGroupRecord, ...]]:
    """Drop groups that cannot be attached in the class's network, with a warning."""
    found = tuple(records)
    if draft.vpc is None:
        return draft, found
    strangers = [record for record in found if record.vpc != draft.vpc]
    if strangers:
        text = ", ".join(f"{record.id} ({record.vpc})" for record in strangers)
        draft = draft.warn(
            "SecurityGroupsInOtherVPC",
            f"spec.securityGroupSelectorTerms also matches {text}; not used, the subnets are in {draft.vpc}",
        )
    return draft, tuple(record for record in found if record.vpc == draft.vpc)
