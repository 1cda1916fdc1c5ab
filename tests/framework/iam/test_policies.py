from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from framework.iam import CALLS, Document, PolicyPart, Scope, Sid, controller_policies, policy_name
from framework.iam.documents import MANAGED_POLICY_LIMIT
from framework.iam.grants import GRANTS
from framework.iam.lint import wildcards
from framework.iam.policies import actions_by_sid

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("part", list(PolicyPart))
def test_a_policy_is_the_golden_one(part: PolicyPart, policies: Mapping[PolicyPart, Document]) -> None:
    golden = json.loads((GOLDEN / f"{part}.json").read_text())

    assert policies[part].to_wire() == golden


@pytest.mark.parametrize("part", list(PolicyPart))
def test_a_policy_fits_the_size_limit_with_the_longest_names(part: PolicyPart, scope: Scope) -> None:
    longest = attrs.evolve(
        scope,
        cluster="c" * 100,
        region="ap-northeast-3",
        partition="aws-us-gov",
        node_role_arn="arn:aws-us-gov:iam::123456789012:role/" + "r" * 64,
        queue_arn="arn:aws-us-gov:sqs:ap-northeast-3:123456789012:" + "q" * 80,
    )

    assert len(controller_policies(longest)[part].to_json()) <= MANAGED_POLICY_LIMIT


def test_every_statement_has_a_call_that_needs_it() -> None:
    assert set(actions_by_sid()) == set(GRANTS) == set(Sid)


def test_no_policy_has_a_wildcard_that_the_reference_has_not(policies: Mapping[PolicyPart, Document]) -> None:
    assert [finding for document in policies.values() for finding in wildcards(document)] == []


def test_a_dropped_call_drops_its_permission(scope: Scope) -> None:
    fewer = [call for call in CALLS.values() if call.operation != "TerminateInstances"]

    lifecycle = controller_policies(scope, fewer)[PolicyPart.NODE_LIFECYCLE]

    deletion = next(s for s in lifecycle.statements if s.sid == Sid.SCOPED_DELETION)
    assert deletion.actions == ("ec2:DeleteLaunchTemplate",)


def test_without_a_queue_there_is_no_interruption_policy(scope: Scope) -> None:
    assert PolicyPart.INTERRUPTION not in controller_policies(attrs.evolve(scope, queue_arn=None))


def test_the_policy_names_are_the_customary_ones() -> None:
    assert policy_name(PolicyPart.NODE_LIFECYCLE, "demo") == "KarpenterControllerNodeLifecyclePolicy-demo"
