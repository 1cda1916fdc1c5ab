from __future__ import annotations

import pytest

from framework.iam import Document, Sid, Statement
from framework.iam.lint import wildcards


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (Statement(actions=("ec2:*",), resources=("arn:aws:ec2:::x",)), "action ec2:* has a wildcard"),
        (Statement(actions=("ec2:RunInstances",), resources=("*",)), "ec2:RunInstances on every resource"),
        (Statement(actions=("ec2:DescribeVpcs",), resources=("*",)), "reads every resource"),
        (Statement(principals={"*": ("*",)}, actions=("sts:AssumeRole",)), "anyone is allowed"),
    ],
    ids=["action", "write", "read", "principal"],
)
def test_a_wide_statement_is_found(statement: Statement, problem: str) -> None:
    assert [f.problem for f in wildcards(Document(statements=(statement,)))] == [problem]


def test_a_read_that_aws_cannot_limit_is_accepted() -> None:
    statement = Statement(sid=Sid.PRICING_READ, actions=("pricing:GetProducts",), resources=("*",))

    assert wildcards(Document(statements=(statement,))) == ()


def test_everything_on_everything_is_two_findings() -> None:
    found = wildcards(Document(statements=(Statement(actions=("*",), resources=("*",)),)))

    assert [finding.problem for finding in found] == [
        "action * has a wildcard",
        "* on every resource",
    ]
