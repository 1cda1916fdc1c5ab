"""The examples for GitOps parse, point to what is here, and judge health as they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cel
import pytest
import yaml

from stacks.programs.config import StackConfig

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "gitops"


def _documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / path).read_text()))


def _pool(status: str) -> dict[str, Any]:
    return {
        "status": {"conditions": [{"type": "Other", "status": "True"}, {"type": "Ready", "status": status}]}
    }


@pytest.mark.parametrize(
    ("status", "current", "failed"),
    [("True", True, False), ("False", False, True), ("Unknown", False, False)],
)
def test_flux_judges_by_the_ready_condition(status: str, current: bool, failed: bool) -> None:
    kustomization = _documents("flux/kustomization.yaml")[0]

    checks = kustomization["spec"]["healthCheckExprs"]
    assert {check["kind"] for check in checks} == {"NodePool", "EC2NodeClass"}
    for check in checks:
        found = [cel.evaluate(check[key], _pool(status)) for key in ("current", "failed")]
        assert found == [current, failed]


def test_every_example_points_to_a_folder_of_this_repository() -> None:
    application, flux = _documents("argocd/application.yaml")[0], _documents("flux/kustomization.yaml")[0]
    stack = _documents("pulumi-operator/stack.yaml")[0]

    places = [application["spec"]["source"]["path"], flux["spec"]["path"], stack["spec"]["repoDir"]]
    assert all((ROOT / place).is_dir() for place in places)


def test_the_operators_configuration_is_one_that_the_stack_takes() -> None:
    config = _documents("pulumi-operator/stack.yaml")[0]["spec"]["config"]

    own = {key.removeprefix("charpente:"): value for key, value in config.items() if ":" in key}
    own.pop("aws:region")
    assert StackConfig.read(own).cluster_name == "my-cluster"


def test_argo_cd_judges_both_kinds_alike() -> None:
    rules = _documents("argocd/health.yaml")[0]["data"]

    assert sorted(key.rpartition("health.")[2] for key in rules) == [
        "karpenter.k8s.aws_EC2NodeClass",
        "karpenter.sh_NodePool",
    ]
    assert len(set(rules.values())) == 1
