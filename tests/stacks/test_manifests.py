from __future__ import annotations

from pathlib import Path

import pytest

from framework.components.pools import InvalidManifest
from stacks.programs.manifests import Mismatch, check_against_cluster, read_manifests

FOUNDING = "karpenter/nodepools"


def test_the_founding_manifests_fit_the_founding_cluster() -> None:
    manifests = read_manifests(FOUNDING, "my-cluster")

    check_against_cluster(manifests, "my-cluster", "KarpenterNodeRole-my-cluster")
    assert sorted(m.logical_name for m in manifests) == [
        "ec2nodeclass-default",
        "nodepool-default",
        "schedulingconfig-default",
    ]


def test_a_class_of_another_cluster_stops_the_preview() -> None:
    manifests = read_manifests(FOUNDING, "other")

    with pytest.raises(Mismatch, match=r"EC2NodeClass/default: spec\.role is 'KarpenterNodeRole-my-cluster'"):
        check_against_cluster(manifests, "other", "KarpenterNodeRole-other")


def test_the_placeholder_becomes_the_clusters_name(tmp_path: Path) -> None:
    founding = Path("stacks", FOUNDING, "ec2nodeclass-default.yaml").read_text()
    text = founding.replace("my-cluster", "${CLUSTER_NAME}")
    (tmp_path / "class.yaml").write_text(text)

    check_against_cluster(read_manifests(str(tmp_path), "prod"), "prod", "KarpenterNodeRole-prod")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "class.yaml: not YAML"),
        ("- a", "class.yaml: a document is not an object"),
        ("kind: Pod\napiVersion: v1", "class.yaml: v1 Pod is not a pool's kind"),
    ],
)
def test_a_file_that_is_no_manifest_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "class.yaml").write_text(text)

    with pytest.raises(InvalidManifest, match=problem):
        read_manifests(str(tmp_path), "demo")


def test_the_same_object_twice_names_both_files(tmp_path: Path) -> None:
    text = Path("stacks", FOUNDING, "nodepool-default.yaml").read_text()
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text)

    with pytest.raises(InvalidManifest, match=r"b\.yaml: nodepool-default is in a\.yaml too"):
        read_manifests(str(tmp_path), "demo")


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(InvalidManifest, match="charpente:nodePools"):
        read_manifests("nowhere", "demo")
