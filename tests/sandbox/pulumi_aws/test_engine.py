"""The real engine runs the cluster's program against the sandbox's AWS, by both ways a user has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.aws import AwsProcess
from sandbox.aws.control import Control
from sandbox.aws.faults import Fault
from sandbox.pulumi_aws.engine import Action, Engine, Outcome, PulumiFailed
from stacks.programs.cluster import cluster_program

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(600)]

STACKS = Path(__file__).resolve().parents[3] / "stacks"
CONFIG = {"aws:region": "eu-west-2"}


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[AwsProcess]:
    with AwsProcess(directory=tmp_path / "aws") as process:
        yield process


@pytest.fixture
def engine(aws: AwsProcess, tmp_path: Path) -> Engine:
    return Engine(root=tmp_path / "pulumi", aws_endpoint=aws.endpoint, region="eu-west-2")


@pytest.fixture
def run(engine: Engine) -> Callable[[Action], Outcome]:
    return lambda action: engine.run(
        action, cluster_program, project="charpente-cluster", stack="test", config=CONFIG
    )


def test_a_cluster_comes_stays_and_goes_without_a_trace(
    run: Callable[[Action], Outcome], aws: AwsProcess
) -> None:
    before = Control(aws.endpoint).inventory()

    previewed, made = run(Action.PREVIEW), run(Action.UP)
    again, refreshed = run(Action.UP), run(Action.REFRESH)
    removed = run(Action.DESTROY)

    assert previewed.changes == made.changed
    assert (again.changed, refreshed.changed) == ({}, {})
    assert removed.changed["delete"] == made.changed["create"]
    assert Control(aws.endpoint).inventory() == before


def test_a_refusal_in_the_middle_is_mended_by_the_next_up(
    run: Callable[[Action], Outcome], aws: AwsProcess
) -> None:
    control = Control(aws.endpoint)
    fault = Fault(service="eks", action="CreateNodegroup", code="InvalidRequestException", status=400)
    control.add_fault(fault)
    with pytest.raises(PulumiFailed, match="InvalidRequestException"):
        run(Action.UP)
    control.clear()

    mended = run(Action.UP)

    assert "create" in mended.changed
    assert run(Action.UP).changed == {}


def test_the_command_line_runs_the_same_program(engine: Engine, tmp_path: Path) -> None:
    environment = {**os.environ, **engine.environment()}
    project = tmp_path / "cluster"  # a copy: the engine writes its settings beside Pulumi.yaml
    shutil.copytree(STACKS / "cluster", project)
    settings = project / "Pulumi.cli.yaml"
    settings.write_text("config:\n  aws:region: eu-west-2\n  charpente:clusterName: cli\n")

    def pulumi(*arguments: str) -> str:
        command = ["pulumi", *arguments, "--stack", "cli", "--non-interactive"]
        answer = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    pulumi("stack", "init")
    pulumi("up", "--yes", "--skip-preview")
    pulumi("up", "--yes", "--skip-preview", "--expect-no-changes")

    assert json.loads(pulumi("stack", "output", "--json"))["clusterName"] == "cli"
