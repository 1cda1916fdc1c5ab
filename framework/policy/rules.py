"""The rules, as functions from declared resources to what is wrong with them.

Called by `framework.policy.pack`. Pure. What is unknown at preview is not judged: it is judged at the update.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from framework.api import labels
from framework.iam.documents import Document, Effect, Statement
from framework.iam.lint import wildcards

_CLASS = f"kubernetes:{labels.AWS_GROUP}/v1:EC2NodeClass"
_POOL = f"kubernetes:{labels.GROUP}/v1:NodePool"
_POLICIES = ("aws:iam/policy:Policy", "aws:iam/rolePolicy:RolePolicy")


@attrs.frozen(kw_only=True)
class Declared:
    """One resource as a program declares it."""

    type: str
    name: str
    properties: Mapping[str, Any]

    @property
    def spec(self) -> Mapping[str, Any]:
        """The `spec` of a Kubernetes object."""
        return self.properties.get("spec") or {}


@attrs.frozen(kw_only=True)
class Rule:
    """One rule."""

    name: str
    about: str
    judge: Callable[[Sequence[Declared]], Iterator[str]]
    """From all resources of a stack to what is wrong, each with the resource's name and the remedy."""
    production: bool = False
    """Whether it is for production alone."""


def one_discovery_group(found: Sequence[Declared]) -> Iterator[str]:
    """At most one security group carries a cluster's discovery tag."""
    by_cluster: dict[str, list[str]] = {}
    for each in found:
        tags = each.properties.get("tags") or {}
        if each.type == "aws:ec2/securityGroup:SecurityGroup" and labels.DISCOVERY_TAG in tags:
            by_cluster.setdefault(tags[labels.DISCOVERY_TAG], []).append(each.name)
        if _tags_a_group(each):
            by_cluster.setdefault(str(each.properties.get("value")), []).append(each.name)
    for cluster, names in sorted(by_cluster.items()):
        if len(names) > 1:
            yield (
                f"{', '.join(sorted(names))}: {labels.DISCOVERY_TAG}={cluster} on several security groups, "
                "all of which every node would get; keep the tag on the cluster's own group"
            )


def _tags_a_group(each: Declared) -> bool:
    identifier = each.properties.get("resourceId")
    tagged = each.type == "aws:ec2/tag:Tag" and each.properties.get("key") == labels.DISCOVERY_TAG
    return tagged and isinstance(identifier, str) and identifier.startswith("sg-")


def private_nodes(found: Sequence[Declared]) -> Iterator[str]:
    """Nodes have no public address."""
    for each in found:
        tags = each.properties.get("tags") or {}
        of_nodes = each.type == "aws:ec2/subnet:Subnet" and labels.DISCOVERY_TAG in tags
        if of_nodes and each.properties.get("mapPublicIpOnLaunch"):
            yield f"{each.name}: gives nodes public addresses; set mapPublicIpOnLaunch to false"
        if each.type == _CLASS and each.spec.get("associatePublicIPAddress"):
            yield f"{each.name}: spec.associatePublicIPAddress is true; remove it"


def imdsv2(found: Sequence[Declared]) -> Iterator[str]:
    """The metadata service asks for a session token."""
    for each in found:
        metadata = each.spec.get("metadataOptions") or {} if each.type == _CLASS else {}
        if metadata.get("httpTokens", "required") != "required":
            yield f"{each.name}: spec.metadataOptions.httpTokens is not required; remove it"


def encrypted_volumes(found: Sequence[Declared]) -> Iterator[str]:
    """Volumes that a node class spells out are encrypted; the default ones are."""
    for each in found:
        mappings = each.spec.get("blockDeviceMappings") or () if each.type == _CLASS else ()
        for place, mapping in enumerate(mappings):
            volume = mapping.get("ebs")
            if volume is not None and volume.get("encrypted") is not True:
                yield f"{each.name}: spec.blockDeviceMappings[{place}].ebs.encrypted is not true; set it"


def narrow_policies(found: Sequence[Declared]) -> Iterator[str]:
    """No policy is wider than those that are generated."""
    for each in found:
        text = each.properties.get("policy")
        if each.type in _POLICIES and isinstance(text, str):
            yield from (f"{each.name}: {finding}" for finding in wildcards(_document(text)))


def limited_pools(found: Sequence[Declared]) -> Iterator[str]:
    """Every pool has a limit, so that no workload can grow it for ever."""
    for each in found:
        if each.type == _POOL and not each.spec.get("limits"):
            yield f"{each.name}: has no spec.limits; say how much cpu or how many nodes it may have"


def pinned_images(found: Sequence[Declared]) -> Iterator[str]:
    """No node class follows the newest image: a release of AWS's would replace nodes unasked."""
    for each in found:
        terms = each.spec.get("amiSelectorTerms") or () if each.type == _CLASS else ()
        for place, term in enumerate(terms):
            if str(term.get("alias", "")).endswith("@latest"):
                alias = term["alias"].partition("@")[0]
                yield f"{each.name}: spec.amiSelectorTerms[{place}].alias is {alias}@latest; name a version"


def budgeted_pools(found: Sequence[Declared]) -> Iterator[str]:
    """Every pool says how many of its nodes may be disrupted at a time."""
    for each in found:
        if each.type == _POOL and not (each.spec.get("disruption") or {}).get("budgets"):
            yield f"{each.name}: has no spec.disruption.budgets; say how many nodes may go at a time"


def _document(text: str) -> Document:
    statements = json.loads(text)["Statement"]
    return Document(statements=tuple(_statement(raw) for raw in _listed(statements)))


def _statement(raw: Mapping[str, Any]) -> Statement:
    return Statement(
        sid=raw.get("Sid"),
        effect=Effect(raw["Effect"]),
        # What is left out of a list of denials is allowed: as wide as a wildcard.
        actions=tuple(_listed(raw["Action"])) if "Action" in raw else ("*",),
        resources=tuple(_listed(raw["Resource"])) if "Resource" in raw else ("*",),
    )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


RULES: tuple[Rule, ...] = (
    Rule(
        name="one-discovery-group",
        about="One security group carries the discovery tag.",
        judge=one_discovery_group,
    ),
    Rule(name="private-nodes", about="Nodes have no public address.", judge=private_nodes),
    Rule(name="imdsv2", about="The metadata service asks for a session token.", judge=imdsv2),
    Rule(name="encrypted-volumes", about="Nodes' volumes are encrypted.", judge=encrypted_volumes),
    Rule(
        name="narrow-policies",
        about="No policy is wider than the generated ones.",
        judge=narrow_policies,
    ),
    Rule(name="limited-pools", about="Pools have limits.", judge=limited_pools, production=True),
    Rule(
        name="pinned-images",
        about="Node classes name an image's version.",
        judge=pinned_images,
        production=True,
    ),
    Rule(
        name="budgeted-pools", about="Pools have disruption budgets.", judge=budgeted_pools, production=True
    ),
)
