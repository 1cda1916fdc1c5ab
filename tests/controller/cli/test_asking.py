"""`simulate` and `explain` on a snapshot: exit codes, JSON, one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from controller.cli import main
from controller.whatif import dumped
from tests.controller.whatif.clusters import a_cluster


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.json").write_bytes(dumped(a_cluster()))
    (tmp_path / "wrong.yaml").write_text("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: x}\n")
    return tmp_path


def charpente(command: str) -> Result:
    return CliRunner().invoke(main, command.split(), env={"KUBECONFIG": "/nowhere", "CLUSTER_NAME": "c"})


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("simulate --snapshot cluster.json --scale shop/web=3", 0),
        ("simulate --snapshot cluster.json --drain node-1", 0),
        ("simulate --snapshot cluster.json --scale shop/web=3 --json", 0),
        ("explain node node-1 --snapshot cluster.json", 0),
        ("explain budget default --snapshot cluster.json", 0),
    ],
)
def test_questions_are_answered(command: str, code: int) -> None:
    result = charpente(command)

    assert (result.exit_code, result.stderr) == (code, "")
    assert not command.endswith("--json") or json.loads(result.stdout)["after"]["nodes"] == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("simulate --snapshot none.json", "none.json cannot be read: No such file or directory"),
        ("simulate --snapshot wrong.yaml", "wrong.yaml is no snapshot"),
        ("simulate --snapshot cluster.json --scale web", "--scale 'web' is not [NAMESPACE/]NAME=PODS"),
        ("simulate --snapshot cluster.json --apply wrong.yaml", "wrong.yaml:1: NodePool/x: spec"),
        ("simulate --snapshot cluster.json --apply none.yaml", "none.yaml cannot be read"),
        ("simulate", "kubeconfig /nowhere cannot be used"),
        ("snapshot out.json", "kubeconfig /nowhere cannot be used"),
        ("explain pod web --snapshot cluster.json", "there is no Pod default/web"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(command: str, words: str) -> None:
    result = charpente(command)

    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
