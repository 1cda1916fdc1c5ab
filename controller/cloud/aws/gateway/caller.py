"""The one way to AWS: boto3 clients from one session, run in a bounded thread pool.

Used by the gateways next to this module, never by anything else. Owns the session, the retry
configuration, the pool, the translation of errors and the count of calls. Retries live in botocore
(adaptive mode: a token bucket per client that shrinks on throttling); nothing above repeats a call
for transport reasons.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, ParamSpec, Protocol, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import InstanceMetadataRegionFetcher

from controller.clock import Clock
from controller.cloud.aws.errors import AwsUnavailable, classify
from framework.iam.calls import Call

__all__ = ["AwsSession", "Caller", "Observe", "ignore_calls"]

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREADS: Final = 64
"""Most calls in flight: enough for 100 fleets a second at half a second each, and bounded memory."""
MAX_ATTEMPTS: Final = 6
"""Attempts per call, the first included; adaptive mode spaces them."""
CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 60
"""Longer than the 20 s of a long poll and than a CreateFleet of 1,000 instances takes to answer."""


class Observe(Protocol):
    """Told about every call that ended."""

    def __call__(self, call: Call, status: str, seconds: float) -> None:
        """Count one call; `status` is `ok` or the error code."""
        ...


def ignore_calls(call: Call, status: str, seconds: float) -> None:
    """Observe nothing; for tools and tests that keep no metrics."""
    del call, status, seconds


class AwsSession:
    """One boto3 session and the settings that every client shares."""

    def __init__(self, *, user_agent: str, region: str | None = None) -> None:
        """Take the region given, else the SDK's own configuration, else the instance metadata.

        Raises: ValueError when no region can be found.
        """
        self._session = boto3.session.Session(region_name=region)
        found = self._session.region_name or InstanceMetadataRegionFetcher().retrieve_region()
        if not found:
            msg = "AWS region: not configured and not readable from instance metadata; set AWS_REGION"
            raise ValueError(msg)
        self.region: str = found
        self._user_agent = user_agent

    def config(self, *, retries: bool = True) -> Config:
        """Return the client settings; `retries=False` for dry runs, whose caller judges each answer."""
        mode: Literal["adaptive", "standard"] = "adaptive" if retries else "standard"
        return Config(
            region_name=self.region,
            retries={"mode": mode, "total_max_attempts": MAX_ATTEMPTS if retries else 1},
            max_pool_connections=MAX_THREADS,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            user_agent_extra=self._user_agent,
        )

    @property
    def boto(self) -> boto3.session.Session:
        """Return the boto3 session, for the gateways to make their typed clients from."""
        return self._session


class Caller:
    """Runs blocking calls off the loop, translates their errors and counts them."""

    def __init__(self, clock: Clock, observe: Observe = ignore_calls) -> None:
        """Start with an empty pool; threads are made on demand."""
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="aws")
        self._clock = clock
        self._observe = observe

    async def run(self, call: Call, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one call of the table in the pool. Raises: AwsError and its subclasses."""
        loop = asyncio.get_running_loop()
        started = self._clock.monotonic()
        status = "ok"
        try:
            return await loop.run_in_executor(self._pool, functools.partial(function, *args, **kwargs))
        except ClientError as exc:
            error = exc.response.get("Error", {})
            status = error.get("Code", "Unknown")
            http = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            raise classify(call.key, status, error.get("Message", ""), http) from exc
        except BotoCoreError as exc:
            status = type(exc).__name__
            raise AwsUnavailable(call.key, status, str(exc)) from exc
        finally:
            self._observe(call, status, self._clock.monotonic() - started)

    def close(self) -> None:
        """Let running calls end and take no new ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)
