"""Clients follow the session's region and endpoint settings (issue 6, one gateway)."""

from __future__ import annotations

import pytest

from controller.cloud.aws.gateway.caller import AwsSession
from controller.cloud.aws.gateway.others import pricing_region


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing of the machine's own AWS settings in."""
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_USE_FIPS_ENDPOINT",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")


def url(service: str, region: str | None = "us-gov-west-1") -> str:
    session = AwsSession(user_agent="test", region=region)
    client = session.boto.client(service, config=session.config())  # type: ignore[call-overload]  # any service
    return str(client.meta.endpoint_url)


@pytest.mark.parametrize("service", ["ec2", "sqs"])
def test_fips_endpoints_are_used_when_the_session_says_so(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = url(service, "us-east-1")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")

    assert "fips" not in plain
    assert "fips" in url(service, "us-east-1")


def test_a_private_endpoint_is_used_when_the_session_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "https://vpce-1.ec2.example")

    assert url("ec2", "eu-west-2") == "https://vpce-1.ec2.example"
    assert "eu-west-2" in url("sqs", "eu-west-2")


def test_the_region_comes_from_the_environment_when_it_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    assert AwsSession(user_agent="test").region == "eu-west-1"


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("ap-northeast-1", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("eu-west-2", "eu-central-1"),
        ("us-west-2", "us-east-1"),
        ("sa-east-1", "us-east-1"),
    ],
)
def test_prices_are_asked_for_where_they_are_served(region: str, endpoint: str) -> None:
    assert pricing_region(region) == endpoint
