from __future__ import annotations

from collections.abc import Mapping

import pytest

from framework.iam import Document, PolicyPart, Scope, controller_policies


@pytest.fixture
def scope() -> Scope:
    return Scope(
        region="eu-west-2",
        account="123456789012",
        cluster="demo",
        node_role_arn="arn:aws:iam::123456789012:role/KarpenterNodeRole-demo",
        queue_arn="arn:aws:sqs:eu-west-2:123456789012:demo",
    )


@pytest.fixture
def policies(scope: Scope) -> Mapping[PolicyPart, Document]:
    return controller_policies(scope)
