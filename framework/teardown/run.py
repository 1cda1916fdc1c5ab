"""The teardown itself: pools, claims, node classes, then a sweep of the account.

Called through `framework.teardown`. Level-triggered: it looks, takes the next step and looks again, so a run
that was killed is finished by the next one. A finalizer is taken off only where no controller does it any
more, and only for a claim whose instance is proven gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import attrs

from framework.api import UserError, labels
from framework.teardown.values import Account, Cluster, Instance, Interface, Kind, Object

_CNI_TAG = "cluster.k8s.amazonaws.com/name"
_CNI_DESCRIPTION = "aws-K8S-"
_DETACHED = "available"


class TearDownFailed(UserError):
    """Nodes of the cluster are still there, and why."""


@attrs.frozen(kw_only=True)
class Pace:
    """How long to be patient."""

    patience: timedelta = timedelta(minutes=10)
    """How long pods may take to leave as their budgets allow."""
    force: timedelta = timedelta(minutes=10)
    """How long forced ending may take before it counts as failed."""
    poll: timedelta = timedelta(seconds=2)


@attrs.frozen(kw_only=True)
class Report:
    """What a teardown found left over, beyond what the controller ended itself."""

    terminated: Sequence[str]
    removed: Sequence[str]
    """Launch templates and instance profiles, `kind id`."""
    finalizers_removed: Sequence[str]
    """Claims that no controller would let go."""
    interfaces_deleted: Sequence[str]
    interfaces_left: Sequence[str]
    """Interfaces of the nodes' groups that are in use or nobody's for certain: for a human to judge."""


@attrs.define(kw_only=True)
class TearDown:
    """One teardown of one cluster's nodes."""

    name: str
    """The cluster's name."""
    cluster: Cluster
    account: Account
    pace: Pace
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    tell: Callable[[str], None]
    _terminated: set[str] = attrs.field(factory=set, init=False)
    _finalizers: set[str] = attrs.field(factory=set, init=False)
    _forced: set[str] = attrs.field(factory=set, init=False)

    def run(self) -> Report:
        """Take everything down. Raises TearDownFailed, after which another run goes on from there."""
        if self._in_cluster():
            self._drain()
            self._remove_classes()
        self._end_instances()
        removed = self._remove_leftovers()
        deleted, left = self._sweep_interfaces()
        return Report(
            terminated=sorted(self._terminated),
            removed=removed,
            finalizers_removed=sorted(self._finalizers),
            interfaces_deleted=deleted,
            interfaces_left=left,
        )

    def _in_cluster(self) -> bool:
        """Whether there is a cluster to drain; one that is merely out of reach is never given up."""
        if self.cluster.reachable():
            return True
        if self.account.cluster_exists():
            raise TearDownFailed(
                f"cluster {self.name}: the API server does not answer, but EKS has the cluster; nothing was "
                "changed: run it again when it answers, or delete the cluster first"
            )
        self.tell(f"cluster {self.name} is gone: only the account is swept")
        return False

    def _drain(self) -> None:
        """Delete pools and claims and wait until the last claim is gone."""
        for pool in self.cluster.objects(Kind.POOL):
            self.cluster.delete(Kind.POOL, _name(pool))
        begun = self.now()
        while claims := self.cluster.objects(Kind.CLAIM):
            for claim in claims:
                if "deletionTimestamp" not in claim["metadata"]:
                    self.cluster.delete(Kind.CLAIM, _name(claim))
            spent = self.now() - begun
            if not self.cluster.controller_answers():
                self._let_go(claims)
            elif spent >= self.pace.patience:
                self._force(claims)
            self._wait(claims, spent)

    def _wait(self, claims: Sequence[Object], spent: timedelta) -> None:
        names = ", ".join(sorted(_name(claim) for claim in claims)[:5])
        budgets = ", ".join(sorted(self.cluster.blocking_budgets()))
        held = f"; no eviction is allowed by PodDisruptionBudget {budgets}" if budgets else ""
        text = f"{len(claims)} NodeClaims left after {spent.seconds} s ({names}){held}"
        if spent > self.pace.patience + self.pace.force:
            raise TearDownFailed(f"cluster {self.name}: {text}; look at these and run it again")
        self.tell(text)
        self.sleep(self.pace.poll.total_seconds())

    def _force(self, claims: Sequence[Object]) -> None:
        """Have the controller end the nodes now, whatever forbids evictions."""
        instant = self.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for claim in claims:
            if (name := _name(claim)) not in self._forced:
                self._forced.add(name)
                self.cluster.annotate(Kind.CLAIM, name, {labels.TERMINATION_TIMESTAMP: instant})

    def _let_go(self, claims: Sequence[Object]) -> None:
        """Do what no controller is there to do: end instances, and let go of claims that have none left."""
        instances = self.account.instances()
        for claim in claims:
            alive = [i for i in instances if not i.gone and _is_of(i, claim)]
            if alive:
                self._terminate(alive)
                continue
            name, node = _name(claim), (claim.get("status") or {}).get("nodeName")
            if node:
                self.cluster.delete(Kind.NODE, node)
                self.cluster.drop_finalizer(Kind.NODE, node, labels.TERMINATION_FINALIZER)
            self.cluster.drop_finalizer(Kind.CLAIM, name, labels.TERMINATION_FINALIZER)
            self._finalizers.add(name)

    def _remove_classes(self) -> None:
        begun = self.now()
        while classes := self.cluster.objects(Kind.NODE_CLASS):
            stuck = not self.cluster.controller_answers() or self.now() - begun > self.pace.force
            for found in classes:
                self.cluster.delete(Kind.NODE_CLASS, _name(found))
                if stuck:  # the sweep removes what the finalizer stands for
                    self.cluster.drop_finalizer(Kind.NODE_CLASS, _name(found), labels.NODECLASS_FINALIZER)
            self.tell(f"{len(classes)} EC2NodeClasses left")
            self.sleep(self.pace.poll.total_seconds())

    def _terminate(self, instances: Sequence[Instance]) -> None:
        ids = [i.id for i in instances if i.state != "shutting-down"]
        if ids:
            self.account.terminate(ids)
            self._terminated.update(ids)

    def _end_instances(self) -> None:
        """End every instance of the cluster's pools that no claim speaks of, and wait."""
        begun = self.now()
        while alive := [i for i in self.account.instances() if not i.gone]:
            text = f"{len(alive)} instances left ({', '.join(sorted(i.id for i in alive)[:5])})"
            if self.now() - begun > self.pace.force:
                raise TearDownFailed(f"cluster {self.name}: {text}; see why EC2 keeps them and run it again")
            self._terminate(alive)
            self.tell(text)
            self.sleep(self.pace.poll.total_seconds())

    def _remove_leftovers(self) -> Sequence[str]:
        removed = []
        for leftover in sorted(self.account.leftovers()):
            self.account.remove(leftover)
            removed.append(f"{leftover.kind} {leftover.id}")
        return removed

    def _sweep_interfaces(self) -> tuple[Sequence[str], Sequence[str]]:
        """Delete what the network plugin left detached; name the rest, which would hold the groups."""
        instances = {i.id for i in self.account.instances()}
        deleted, left = [], []
        for interface in sorted(self.account.interfaces(self.account.node_groups()), key=lambda i: i.id):
            if interface.status == _DETACHED and _is_ours(interface, self.name, instances):
                self.account.delete_interface(interface.id)
                deleted.append(interface.id)
            elif interface.instance is None:  # others go with their instance
                left.append(interface.id)
        if left:
            self.tell(f"interfaces that use the nodes' security groups and stay: {', '.join(left)}")
        return deleted, left


def _name(raw: Object) -> str:
    return str(raw["metadata"]["name"])


def _is_of(instance: Instance, claim: Object) -> bool:
    provider_id = str((claim.get("status") or {}).get("providerID") or "")
    return instance.claim == _name(claim) or provider_id.rpartition("/")[2] == instance.id


def _is_ours(interface: Interface, cluster: str, instances: set[str]) -> bool:
    """Tell by the network plugin's tag, or by its description naming one of the cluster's instances."""
    if (
        interface.tags.get(_CNI_TAG) == cluster
        or f"{labels.CLUSTER_OWNED_TAG_PREFIX}{cluster}" in interface.tags
    ):
        return True
    described = interface.description.removeprefix(_CNI_DESCRIPTION)
    return described != interface.description and described in instances
