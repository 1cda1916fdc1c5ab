"""EKS tokens are taken apart with care; callers become the principals that access entries name."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from framework.eks_token import token
from sandbox.kubernetes.eks_tokens import (
    Caller,
    TokenRefused,
    TokenReviewer,
    answer,
    principal_of,
    signed_request,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
URL = (
    "https://sts.eu-west-2.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Date=20260101T120000Z"
    "&X-Amz-Credential=AKIA%2F20260101%2Feu-west-2%2Fsts%2Faws4_request&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id"
)


def test_the_signed_request_is_read_from_a_token() -> None:
    query = signed_request(token(URL), NOW)

    assert query["X-Amz-Credential"] == "AKIA/20260101/eu-west-2/sts/aws4_request"


@pytest.mark.parametrize(
    ("text", "now", "reason"),
    [
        ("abc", NOW, "does not begin with"),
        ("k8s-aws-v1.Zm9v", NOW, "not a presigned request"),
        ("k8s-aws-v1." + base64.b64encode(b"\xff\xff").decode(), NOW, "not a presigned request"),
        (token(URL), NOW + timedelta(minutes=16), "expired"),
        (token(URL.replace("GetCallerIdentity", "AssumeRole")), NOW, "asks for AssumeRole"),
        (token(URL.replace("%3Bx-k8s-aws-id", "")), NOW, "does not cover x-k8s-aws-id"),
    ],
)
def test_a_token_that_proves_nothing_is_refused(text: str, now: datetime, reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        signed_request(text, now)


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        (
            "arn:aws:sts::123456789012:assumed-role/Node/i-0abc",
            ("arn:aws:iam::123456789012:role/Node", "i-0abc"),
        ),
        ("arn:aws:sts::123456789012:user/moto", ("arn:aws:iam::123456789012:user/moto", "")),
        ("arn:aws:iam::123456789012:user/alice", ("arn:aws:iam::123456789012:user/alice", "")),
    ],
)
def test_the_principal_behind_a_session_is_its_role(arn: str, principal: tuple[str, str]) -> None:
    assert principal_of(arn) == principal


class Knows:
    """A reviewer that knows one token."""

    def review(self, text: str) -> Caller:
        if text != "good":
            raise TokenRefused("who is that?")
        return Caller(username="alice", groups=("admins",), arn="arn:alice")


def review(text: str) -> dict[str, Any]:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": text}}
    found: dict[str, Any] = answer(cast("TokenReviewer", Knows()), asked)["status"]
    return found


def test_a_known_caller_is_authenticated() -> None:
    assert review("good") == {
        "authenticated": True,
        "user": {
            "username": "alice",
            "uid": "arn:alice",
            "groups": ["admins"],
            "extra": {"arn": ["arn:alice"]},
        },
    }


def test_an_unknown_caller_is_not() -> None:
    assert review("bad") == {"authenticated": False, "error": "who is that?"}
