from __future__ import annotations

from typing import Any

import attrs
import pytest

from framework.api import (
    EC2NODECLASS_HASH_VERSION,
    NODEPOOL_HASH_VERSION,
    Duration,
    FieldChange,
    HashedDocument,
    NodeClassRef,
    NodePool,
    NodePoolTemplateMetadata,
    Taint,
    TaintEffect,
    ec2nodeclass_document,
    ec2nodeclass_hash,
    nodepool_document,
    nodepool_hash,
    parse_quantity,
)
from tests.framework.api.builders import CLASS_REF, a_class, a_pool, a_requirement, a_template

RED = Taint(key="red", effect=TaintEffect.NO_SCHEDULE)
BLUE = Taint(key="blue", effect=TaintEffect.NO_SCHEDULE)


@pytest.mark.parametrize(
    "changed",
    [
        a_pool(template=a_template(taints=(RED,))),
        a_pool(template=a_template(startup_taints=(RED,))),
        a_pool(template=a_template(expire_after=Duration("1h"))),
        a_pool(template=a_template(expire_after=None)),
        a_pool(template=a_template(termination_grace_period=Duration("0s"))),
        a_pool(template=a_template(node_class_ref=attrs.evolve(CLASS_REF, name="other"))),
        a_pool(
            template=a_template(node_class_ref=NodeClassRef(group="g", kind="EC2NodeClass", name="default"))
        ),
        a_pool(template=attrs.evolve(a_template(), metadata=NodePoolTemplateMetadata(labels={"team": "a"}))),
        a_pool(
            template=attrs.evolve(a_template(), metadata=NodePoolTemplateMetadata(annotations={"a": "b"}))
        ),
    ],
)
def test_what_nodes_are_made_from_changes_the_hash(changed: NodePool) -> None:
    assert nodepool_hash(changed) != nodepool_hash(a_pool())


@pytest.mark.parametrize(
    "changed",
    [
        a_pool(weight=10),
        a_pool(limits={"cpu": parse_quantity("10")}),
        a_pool(replicas=3),
        a_pool(template=a_template(requirements=(a_requirement("team", "Exists"),))),
        a_pool(template=a_template(expire_after=Duration("43200m"))),
        a_pool(name="other"),
    ],
)
def test_the_rest_does_not(changed: NodePool) -> None:
    assert nodepool_hash(changed) == nodepool_hash(a_pool())


def test_order_and_repetition_do_not_count() -> None:
    hashes = {
        nodepool_hash(a_pool(template=a_template(taints=taints)))
        for taints in ((RED, BLUE), (BLUE, RED), (BLUE, RED, BLUE))
    }

    assert len(hashes) == 1


def test_a_change_of_these_hashes_needs_a_new_version() -> None:
    assert (NODEPOOL_HASH_VERSION, EC2NODECLASS_HASH_VERSION) == ("v3-py1", "v4-py1")
    assert nodepool_hash(a_pool()) == "11597401510489434130"
    assert ec2nodeclass_hash(a_class()) == "6425377417255243377"


@pytest.mark.parametrize(
    "spec",
    [
        {"associatePublicIPAddress": False},
        {"userData": "#!/bin/bash"},
        {"role": "other"},
        {"role": None, "instanceProfile": "p"},
        {"tags": {"team": "a"}},
        {"kubelet": {"maxPods": 50}},
        {"blockDeviceMappings": [{"ebs": {"volumeSize": "20Gi"}}]},
        {"instanceStorePolicy": "RAID0"},
        {"detailedMonitoring": True},
        {"metadataOptions": {"httpTokens": "optional"}},
        {"context": "c"},
        {"amiFamily": "Custom"},
        {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
    ],
    ids=str,
)
def test_what_instances_are_made_from_changes_the_hash(spec: dict[str, Any]) -> None:
    assert ec2nodeclass_hash(a_class(**spec)) != ec2nodeclass_hash(a_class())


@pytest.mark.parametrize(
    "spec",
    [
        {"subnetSelectorTerms": [{"id": "subnet-1"}]},
        {"securityGroupSelectorTerms": [{"id": "sg-1"}]},
        {"capacityReservationSelectorTerms": [{"id": "cr-1"}]},
        {"amiSelectorTerms": [{"alias": "al2023@v20260201"}]},
        {"amiFamily": "AL2023"},
        {"ipPrefixCount": 1},
        {"detailedMonitoring": False},
        {"tags": {}},
    ],
    ids=str,
)
def test_what_is_judged_otherwise_does_not(spec: dict[str, Any]) -> None:
    assert ec2nodeclass_hash(a_class(**spec)) == ec2nodeclass_hash(a_class())


def test_another_spelling_of_a_quantity_is_not_a_change() -> None:
    sizes = [
        a_class(blockDeviceMappings=[{"ebs": {"volumeSize": size}}]) for size in ("1Ti", "1024Gi", "1000G")
    ]

    hashes = [ec2nodeclass_hash(node_class) for node_class in sizes]

    assert hashes[0] == hashes[1] != hashes[2]


def test_documents_tell_which_field_changed() -> None:
    before = ec2nodeclass_document(a_class(tags={"team": "a"}, userData="x" * 1000))
    after = ec2nodeclass_document(a_class(tags={"team": "b"}, kubelet={"maxPods": 50}))
    kept = HashedDocument.parse(before.text)
    assert kept == before

    changes = before.changes(after)

    assert [change.field for change in changes] == ["kubelet.maxPods", "tags.team", "userData"]
    assert changes[1] == FieldChange(field="tags.team", before="a", after="b")
    assert str(changes[0]) == "kubelet.maxPods: not set → 50"


def test_text_that_is_no_document_is_none() -> None:
    assert HashedDocument.parse("{") is None
    assert HashedDocument.parse("[]") is None


def test_documents_of_equal_pools_have_no_changes() -> None:
    assert nodepool_document(a_pool()).changes(nodepool_document(a_pool(weight=3))) == ()
