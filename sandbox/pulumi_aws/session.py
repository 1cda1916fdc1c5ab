"""The account, region and endpoints that one provider instance works with.

Called by the resources and functions of the provider. Owns boto3 clients and
default tags; endpoints come from the provider's configuration, else from
`AWS_ENDPOINT_URL` in the environment, so that programs never mention them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs
import boto3
import botocore.config

from sandbox.pulumi_aws.wire import Value

_JSON_ENCODED = ("endpoints", "defaultTags", "ignoreTags", "assumeRoles")
_RETRIES = 3
_make_client: Any = boto3.client
"""The stubs type one overload for each service; here the service is a variable."""


def decoded(config: Mapping[str, Value]) -> dict[str, Value]:
    """The provider's configuration with lists and maps decoded; the SDK sends them as JSON text."""
    plain = dict(config)
    for key in _JSON_ENCODED:
        if isinstance(plain.get(key), str):
            plain[key] = json.loads(plain[key])
    return plain


@attrs.define(kw_only=True, slots=False)
class Session:
    """Clients for one region, with the tags every resource gets."""

    region: str
    access_key: str = "sandbox"
    secret_key: str = "sandbox"  # noqa: S105 (moto accepts any)
    endpoints: Mapping[str, str] = attrs.field(factory=dict)
    default_tags: Mapping[str, str] = attrs.field(factory=dict)
    _clients: dict[tuple[str, str], Any] = attrs.field(factory=dict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @classmethod
    def from_config(cls, config: Mapping[str, Value], environ: Mapping[str, str] = os.environ) -> Session:
        """A session from the provider's configuration and the environment."""
        plain = decoded(config)
        region = plain.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        return cls(
            region=region or "us-east-1",
            access_key=plain.get("accessKey") or environ.get("AWS_ACCESS_KEY_ID") or "sandbox",
            secret_key=plain.get("secretKey") or environ.get("AWS_SECRET_ACCESS_KEY") or "sandbox",
            endpoints={name: url for entry in plain.get("endpoints") or [] for name, url in entry.items()},
            default_tags=(plain.get("defaultTags") or {}).get("tags") or {},
        )

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of a service, made once for each region."""
        where = region or self.region
        with self._lock:
            if (service, where) not in self._clients:
                self._clients[service, where] = _make_client(
                    service,
                    region_name=where,
                    endpoint_url=self.endpoints.get(service),
                    aws_access_key_id=self.access_key,
                    aws_secret_access_key=self.secret_key,
                    config=botocore.config.Config(retries={"total_max_attempts": _RETRIES}),
                )
            return self._clients[service, where]

    @cached_property
    def account(self) -> str:
        """The account's number."""
        return str(self.client("sts").get_caller_identity()["Account"])

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """An ARN in this account; `region=""` for global services."""
        where = self.region if region is None else region
        return f"arn:aws:{service}:{where}:{self.account}:{resource}"

    def tags(self, inputs: Mapping[str, Value]) -> dict[str, str]:
        """The tags of a resource: the defaults, then its own."""
        return {**self.default_tags, **(inputs.get("tags") or {})}
