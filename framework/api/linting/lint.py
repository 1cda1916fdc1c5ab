"""Lint: every manifest on its own, then all of them together.

Called by `charpente lint` and previews. Owns the order of checks and what is said once only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from framework.api.admission import admit
from framework.api.capacitybuffer import CapacityBuffer
from framework.api.crds import KINDS, kind_of
from framework.api.ec2nodeclass import EC2NodeClass
from framework.api.errors import InvalidField, Problem
from framework.api.linting.crosschecks import Known, crosschecks
from framework.api.linting.disruption import disruption_findings
from framework.api.linting.findings import Finding
from framework.api.linting.manifests import Manifest, read_manifests
from framework.api.metadata import Kind
from framework.api.nodeoverlay import NodeOverlay
from framework.api.nodepool import NodePool
from framework.api.suggest import suggestion
from framework.api.validation import (
    validate_capacitybuffer,
    validate_ec2nodeclass,
    validate_nodeoverlay,
    validate_nodepool,
)

__all__ = ["lint"]

_OURS: Final = frozenset(kind.INFO.group for kind in KINDS)
_FORMER_KINDS: Final = {"Provisioner": "NodePool", "Machine": "NodeClaim", "AWSNodeTemplate": "EC2NodeClass"}


def lint(sources: Mapping[str, str], *, gates: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """Return what is wrong with the files, given as text by name, sorted by place.

    What came after v1.9 is accepted when its gate is in `gates`.
    """
    findings: list[Finding] = []
    manifests: list[Manifest] = []
    for file, text in sources.items():
        found, faults = read_manifests(file, text)
        manifests += found
        findings += faults
    known: list[Known] = []
    for manifest in manifests:
        findings += _single(manifest, gates, known)
    findings += crosschecks(known)
    findings += disruption_findings(known, manifests)
    return tuple(sorted(set(findings), key=lambda finding: finding.order))


def _single(manifest: Manifest, gates: frozenset[str], known: list[Known]) -> Iterator[Finding]:
    """Give the faults of one object; one that can be read at all joins the known ones."""
    kind = kind_of(manifest.api_version, manifest.kind)
    if kind is None:
        yield from _unknown_kind(manifest)
        return
    problems = list(admit(kind, manifest.raw, gates=gates))
    try:
        obj = kind.from_wire(manifest.raw)
    except InvalidField:
        obj = None
    runtime = [] if obj is None else list(_runtime_problems(obj))
    for problem in _once(problems, runtime):
        yield _finding(manifest, problem, "schema")
    for problem in runtime:
        yield _finding(manifest, problem, "schema" if problems else "validation")
    if obj is not None:
        known.append(Known(manifest=manifest, obj=obj, sound=not problems))


def _once(problems: Sequence[Problem], runtime: Sequence[Problem]) -> list[Problem]:
    """Drop a broken rule about a list or map whose faulty entry the runtime check names."""
    return [
        problem
        for problem in problems
        if not (
            problem.problem.startswith("breaks a rule")
            and any(other.field.startswith((f"{problem.field}[", f"{problem.field}.")) for other in runtime)
        )
    ]


def _runtime_problems(obj: Kind) -> tuple[Problem, ...]:
    if isinstance(obj, NodePool):
        return validate_nodepool(obj)
    if isinstance(obj, NodeOverlay):
        return validate_nodeoverlay(obj)
    if isinstance(obj, EC2NodeClass):
        return validate_ec2nodeclass(obj)
    if isinstance(obj, CapacityBuffer):
        return validate_capacitybuffer(obj)
    return ()


def _unknown_kind(manifest: Manifest) -> Iterator[Finding]:
    """Give a finding for an object of one of our groups that we do not serve; others are not ours.

    One of our kinds without a version is ours.
    """
    group, _, _ = manifest.api_version.partition("/")
    served = {kind.INFO.kind: kind.INFO.api_version for kind in KINDS if kind.INFO.group == group}
    everywhere: dict[str, Any] = {kind.INFO.kind: kind.INFO.api_version for kind in KINDS}
    if group not in _OURS and (manifest.api_version or manifest.kind not in everywhere):
        return
    if manifest.kind in everywhere:
        problem, remedy = f"is {manifest.api_version!r}", f"write {everywhere[manifest.kind]}"
        yield manifest.finding("apiVersion", problem, remedy, rule="kind")
    elif manifest.kind in _FORMER_KINDS:
        remedy = f"it is called {_FORMER_KINDS[manifest.kind]} now; rewrite it"
        yield manifest.finding("kind", f"is {manifest.kind}, which is gone", remedy, rule="kind")
    else:
        remedy = suggestion(manifest.kind, served)
        yield manifest.finding("kind", f"is {manifest.kind!r}, which is not known", remedy, rule="kind")


def _finding(manifest: Manifest, problem: Problem, rule: str) -> Finding:
    return manifest.finding(rule=rule, **attrs.asdict(problem))
