"""Cases about the programs: what they declare, in which order, and what their removal does.

The programs run against the monitor in memory of the component tests, removals on a cluster and an account
in memory.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import attrs

from framework.teardown import Interface, Kind, TearDownFailed
from stacks.programs.platform import platform_program
from tests.cases.files import Variant
from tests.framework.components.recorder import Recorder, Registered, declared
from tests.framework.teardown.fakes import Clock, Scene

_FULL = "full stack"
_PROGRAMS: Mapping[str, Callable[[], None]] = {
    "cluster + crds + one NodePool": platform_program,
    _FULL: platform_program,
}
_LOOK_UPS: Mapping[str, Mapping[str, Any]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": "111122223333"},
    "aws:index/getRegion:getRegion": {"region": "eu-west-9"},
    "aws:index/getPartition:getPartition": {"partition": "aws"},
    "aws:index/getAvailabilityZones:getAvailabilityZones": {"names": ["eu-west-9a", "eu-west-9b"]},
}
_FACTS = {"catalog", "now", "objects", "program", "state", "env", "authenticationMode", "ec2", "enis"}
_FACTS |= {"variants", "name", "apiServer", "cluster"}
_CLUSTER, _PROVIDER = "aws:eks/cluster:Cluster", "pulumi:providers:kubernetes"


@attrs.define
class _Run:
    """A case under way: what its program declares, what its removal did."""

    variant: Variant
    recorder: Recorder = attrs.field(factory=Recorder)
    preview: Recorder = attrs.field(factory=Recorder)
    errors: Sequence[str] = ()
    scene: Scene = attrs.field(factory=Scene)
    failure: str = ""
    report: Any = None


Check = Callable[[_Run, Any], Iterable[str]]


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if not variant.when.startswith("pulumi-"):
        return f"when: {variant.when}"
    facts = sorted(set(variant.given) - _FACTS)
    program = variant.given.get("program", _FULL)
    facts += [] if program in _PROGRAMS else [f"program {program}"]
    if facts:
        return f"needs {', '.join(facts)}"
    unknown = sorted(set(variant.expect) - set(_CHECKS))
    return f"expects {', '.join(unknown)}" if unknown else None


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    found = _Run(variant)
    _declare(found)
    if "destroy" in variant.when:
        _remove(found)
    faults = [fault for key, wanted in variant.expect.items() for fault in _CHECKS[key](found, wanted)]
    mode = variant.given.get("authenticationMode")
    (cluster,) = _of(found.recorder, _CLUSTER)
    if mode not in (None, cluster.inputs["accessConfig"]["authenticationMode"]):
        faults.append(f"authenticationMode: {cluster.inputs['accessConfig']}, expected {mode}")
    return faults


def _declare(found: _Run) -> None:
    """Nothing of a case but its environment could change what its program declares."""
    given = found.variant.given
    environment = tuple(sorted((given.get("env") or {}).items()))
    found.recorder, _ = _declared(given.get("program", _FULL), environment, preview=False)
    if "preview" in found.variant.when:
        found.preview, found.errors = _declared(given.get("program", _FULL), environment, preview=True)


@functools.cache
def _declared(
    program: str, environment: tuple[tuple[str, str], ...], *, preview: bool
) -> tuple[Recorder, Sequence[str]]:
    recorder = Recorder(calls=_LOOK_UPS)
    with mock.patch.dict(os.environ, dict(environment)):
        try:
            declared(_PROGRAMS[program], recorder, preview=preview)
        except Exception as error:
            if not preview:
                raise
            return recorder, [str(error)]  # what a case may be about
    return recorder, []


def _remove(found: _Run) -> None:
    """Run the removal on the case's cluster and account."""
    variant, scene = found.variant, found.scene
    scene.clock = Clock(variant.now)
    scene.account.states = dict(variant.given.get("ec2") or {})
    scene.account.exists = variant.given.get("cluster") != "deleted"
    scene.account.enis = [_interface(raw) for raw in variant.given.get("enis") or ()]
    scene.cluster.answers = "apiServer" not in variant.given
    scene.cluster.controller = "controller missing" not in str(variant.given.get("state", ""))
    kinds = {
        "NodeClaim": Kind.CLAIM,
        "NodePool": Kind.POOL,
        "EC2NodeClass": Kind.NODE_CLASS,
        "Node": Kind.NODE,
    }
    for raw in variant.given["objects"]:
        if raw["kind"] in kinds:
            scene.cluster.put(kinds[raw["kind"]], raw)
    try:
        found.report = scene.teardown().run()
    except TearDownFailed as error:
        found.failure = str(error)


def _interface(raw: Mapping[str, Any]) -> Interface:
    return Interface(
        id=raw["id"],
        status=raw["status"],
        groups=frozenset(raw["groups"]),
        tags=raw.get("tags") or {},
        description=raw.get("description", ""),
        instance=raw.get("instance"),
    )


def _of(recorder: Recorder, kind: str) -> list[Registered]:
    """Resources by their whole type, or by its last part."""
    return [
        each
        for each in recorder.registered
        if kind in (each.type, each.type.rpartition(":")[2]) and not each.type.startswith("charpente:")
    ]


def _differs(what: str, found: Any, wanted: Any) -> Iterator[str]:
    if found != wanted:
        yield f"{what}: {found}, expected {wanted}"


def _create_order(found: _Run, wanted: list[str]) -> Iterator[str]:
    for earlier, later in itertools.pairwise(wanted):
        yield from _depends_on(found, {later: earlier})


def _depends_on(found: _Run, wanted: Mapping[str, str]) -> Iterator[str]:
    """Everything of a kind is made after everything of the other."""
    for later, earlier in wanted.items():
        first, second = _of(found.recorder, earlier), _of(found.recorder, later)
        if not first or not second:
            yield f"no {later if first else earlier} is declared"
        for each in second:
            missing = {one.urn for one in first} - found.recorder.before(each)
            yield from (f"{each.name} is not made after {urn.rpartition('::')[2]}" for urn in sorted(missing))


def _must_include(found: _Run, wanted: list[Mapping[str, Any]]) -> Iterator[str]:
    for each in wanted:
        inputs = each.get("inputs") or {}
        if not any(inputs.items() <= dict(one.inputs).items() for one in _of(found.recorder, each["type"])):
            yield f"no {each['type']} with {inputs}"


def _entry_must_not_set(found: _Run, wanted: list[str]) -> Iterator[str]:
    """Neither on an entry of nodes nor by a policy given to its principal."""
    entries = [
        e for e in _of(found.recorder, "AccessEntry") if str(e.inputs.get("type", "")).startswith("EC2_")
    ]
    principals = {entry.inputs["principalArn"] for entry in entries}
    policies = _of(found.recorder, "AccessPolicyAssociation")
    given = [*entries, *(p for p in policies if p.inputs["principalArn"] in principals)]
    yield from (f"{each.name} sets {key}" for each in given for key in wanted if key in each.inputs)


def _ambient_kubeconfig(found: _Run, wanted: bool) -> Iterator[str]:
    """A provider's kubeconfig comes from the cluster's outputs, also while those are unknown."""
    ambient = []
    for recorder in (found.preview, found.recorder):
        (cluster,) = _of(recorder, _CLUSTER)
        ambient += [p.name for p in _of(recorder, _PROVIDER) if cluster.urn not in p.dependencies]
    for provider in _of(found.recorder, _PROVIDER):
        text = json.loads(provider.inputs["kubeconfig"])
        if [each["cluster"]["server"] for each in text["clusters"]] != ["https://demo.eks"]:
            ambient.append(provider.name)
    yield from _differs("providers with another kubeconfig", bool(ambient), wanted)


def _no_type(found: _Run, wanted: list[str]) -> Iterator[str]:
    yield from (f"{kind} is declared" for kind in wanted if _of(found.recorder, kind))


def _crd_deleted(found: _Run, wanted: bool) -> Iterator[str]:
    """Nothing is left that would hold a definition, and definitions are removed after that."""
    left = [name for (kind, name) in found.scene.cluster.stored if kind is not Kind.NODE]
    yield from _differs("definitions can go", not left and not found.failure, wanted)
    yield from _depends_on(found, {"Teardown": "CustomResourceDefinition"})


def _error(found: _Run, wanted: bool) -> Iterator[str]:
    """A removal that fails says so; one without a cluster asks nothing of what lives in it."""
    yield from _differs("error", bool(found.failure), wanted)
    if not wanted:
        (cluster,) = _of(found.recorder, _CLUSTER)
        inside = [each for each in found.recorder.registered if each.type.startswith("kubernetes:")]
        yield from (
            f"{each.name} outlives the cluster" for each in inside if each.deleted_with != cluster.urn
        )


def _unchanged(found: _Run, wanted: bool) -> Iterator[str]:
    changes = [*found.scene.cluster.changes, *found.scene.account.changes]
    yield from _differs("state unchanged", not changes, wanted)


def _reported(name: str) -> Check:
    return lambda found, wanted: _differs(name, list(getattr(found.report, name, ())), wanted)


_CHECKS: Mapping[str, Check] = {
    "previewErrors": lambda found, wanted: _differs("previewErrors", found.errors, wanted),
    "createOrder": _create_order,
    "noResourceOfType": _no_type,
    "providerUsesAmbientKubeconfig": _ambient_kubeconfig,
    "resourcesMustInclude": _must_include,
    "accessEntryMustNotSet": _entry_must_not_set,
    "dependsOn": _depends_on,
    "crdDeleted": _crd_deleted,
    "finalizersRemovedFor": _reported("finalizers_removed"),
    "finalizersKeptForRunningInstances": lambda found, wanted: _differs(
        "kept for running instances", not found.scene.cluster.let_go_alive, wanted
    ),
    "deletedEnis": _reported("interfaces_deleted"),
    "reportedEnis": lambda found, wanted: _differs(
        "reportedEnis", sorted(getattr(found.report, "interfaces_left", ())), sorted(wanted)
    ),
    "error": _error,
    "stateUnchanged": _unchanged,
}
