from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from framework.eks_token import credential, presigned_url, token


def test_the_signature_covers_the_clusters_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)

    url = urlsplit(presigned_url("demo", "eu-west-2"))

    query = parse_qs(url.query)
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Expires"] == ["60"]


def test_a_token_is_the_url_without_padding() -> None:
    text = token("https://sts/?a=b")

    encoded = text.removeprefix("k8s-aws-v1.")
    assert base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)) == b"https://sts/?a=b"
    assert "=" not in encoded


def test_the_credential_expires_before_eks_refuses_the_token() -> None:
    found = json.loads(credential("t", datetime(2026, 1, 1, tzinfo=UTC)))

    assert found["status"] == {"token": "t", "expirationTimestamp": "2026-01-01T00:14:00Z"}
