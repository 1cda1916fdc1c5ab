from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from controller.cli.crds import crds
from controller.cli.lint import lint

SOUND = """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
"""
WRONG = SOUND + "  weigth: 10\n"
DOUBTFUL = SOUND + "  limits: {cpu: 0}\n"
PROBLEM = "NodePool/web: spec.weigth is not a field; did you mean weight?"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("sound", SOUND), ("wrong", WRONG), ("doubtful", DOUBTFUL)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["sound.yaml"], 0),
        (["doubtful.yaml"], 0),
        (["--strict", "doubtful.yaml"], 1),
        (["sound.yaml", "wrong.yaml"], 1),
        (["."], 1),
        (["missing.yaml"], 2),
        ([], 2),
    ],
)
def test_exit_codes(folder: Path, arguments: list[str], code: int) -> None:
    assert CliRunner().invoke(lint, arguments).exit_code == code


def test_text_for_people(folder: Path) -> None:
    result = CliRunner().invoke(lint, ["wrong.yaml", "sound.yaml"])

    assert result.stdout == f"wrong.yaml:9: error: {PROBLEM} [schema]\n1 error, 0 warnings in 2 files\n"


def test_json_for_programs(folder: Path) -> None:
    result = CliRunner().invoke(lint, ["--format", "json", "wrong.yaml"])

    assert json.loads(result.stdout) == {
        "files": 1,
        "findings": [
            {
                "file": "wrong.yaml",
                "line": 9,
                "severity": "error",
                "rule": "schema",
                "object": "NodePool/web",
                "field": "spec.weigth",
                "problem": "is not a field",
                "remedy": "did you mean weight?",
            }
        ],
    }


def test_sarif(folder: Path) -> None:
    result = CliRunner().invoke(lint, ["--format", "sarif", "wrong.yaml"])

    run = json.loads(result.stdout)["runs"][0]
    assert run["results"] == [
        {
            "ruleId": "schema",
            "level": "error",
            "message": {"text": PROBLEM},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "wrong.yaml"},
                        "region": {"startLine": 9},
                    }
                }
            ],
        }
    ]
    assert "schema" in [rule["id"] for rule in run["tool"]["driver"]["rules"]]


def test_github_annotations(folder: Path) -> None:
    result = CliRunner().invoke(lint, ["--format", "github", "wrong.yaml"])

    assert result.stdout == f"::error file=wrong.yaml,line=9,title=schema::{PROBLEM}\n"


def test_standard_input() -> None:
    result = CliRunner().invoke(lint, ["-"], input=WRONG)

    assert result.stdout.startswith("<stdin>:9: error: ")


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    result = CliRunner().invoke(lint, ["missing.yaml"])

    assert "missing.yaml cannot be read: No such file or directory; give a YAML or JSON file" in result.stderr


def test_crds_are_printed_all_or_by_name() -> None:
    every = CliRunner().invoke(crds, []).stdout
    one = CliRunner().invoke(crds, ["nodepools.karpenter.sh"]).stdout
    buffer = CliRunner().invoke(crds, ["--gate", "CapacityBuffer"]).stdout

    assert every.count("kind: CustomResourceDefinition") == 5
    assert one.count("kind: CustomResourceDefinition") == 1
    assert buffer.count("kind: CustomResourceDefinition") == 6


def test_a_crd_of_no_name_is_refused() -> None:
    result = CliRunner().invoke(crds, ["pools"])

    assert result.exit_code == 2
    assert "no CRD is called pools; use one of nodepools.karpenter.sh" in result.stderr
