"""List and watch: bookmarks, cut streams, versions too old, kinds that are not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random
from typing import Any

from controller.clock import FakeClock
from controller.kube import Gone, ListPage, NotFound, Reflector, Unavailable, kinds
from tests.controller.fakes.tasks import beside


def an_object(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


class Server:
    """Serves scripted lists and watches; a watch script ends with an exception or the end of the stream."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.lists = lists
        self.watches = watches
        self.watched_from: list[str] = []

    async def list_page(self, kind: object, namespace: object = None, **params: object) -> ListPage:
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        version, objects = answer
        return ListPage(items=tuple(objects), resource_version=str(version), continue_token="")

    async def watch(self, kind: object, version: str, *, timeout_s: int) -> AsyncIterator[Any]:
        self.watched_from.append(version)
        if not self.watches:
            await asyncio.Event().wait()
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


class Sink:
    def __init__(self) -> None:
        self.log: list[str] = []

    def upsert(self, obj: Any) -> None:
        self.log.append(f"+{obj['metadata']['name']}")

    def remove(self, obj: Any) -> None:
        self.log.append(f"-{obj['metadata']['name']}")

    def keep_only(self, uids: frozenset[str], resource_version: str) -> None:
        self.log.append(f"={','.join(sorted(uids))}@{resource_version}")

    def heard(self, at: float) -> None:
        self.heard_at = at

    def absent(self) -> None:
        self.log.append("absent")


async def follow(server: Server, seconds: float = 60) -> list[str]:
    clock, sink, client = FakeClock(datetime(2026, 1, 1, tzinfo=UTC)), Sink(), server
    untyped: Any = client
    reflector = Reflector(untyped, kinds.NODE, sink, clock=clock, random=Random(0))  # noqa: S311
    async with beside(reflector.run()):
        await clock.advance(seconds)
    return sink.log


async def test_a_stream_that_ends_goes_on_from_the_last_version() -> None:
    bookmark = {"type": "BOOKMARK", "object": an_object("", 20)}
    added = {"type": "ADDED", "object": an_object("b", 12)}
    server = Server(
        [(10, [an_object("a", 5)])], [[added, bookmark], [{"type": "DELETED", "object": an_object("a", 21)}]]
    )

    log = await follow(server)

    assert log == ["+a", "=uid-a@10", "+b", "-a"]
    assert server.watched_from == ["10", "20", "21"]


async def test_a_version_too_old_lists_again() -> None:
    server = Server([(10, [an_object("a", 5)]), (30, [])], [[Gone("watch nodes", "too old")]])

    log = await follow(server)

    assert log == ["+a", "=uid-a@10", "=@30"]
    assert server.watched_from == ["10", "30"]


async def test_a_broken_stream_goes_on_after_a_wait_without_listing() -> None:
    server = Server(
        [(10, [])], [[Unavailable("watch nodes", "reset")], [Unavailable("watch nodes", "reset")]]
    )

    log = await follow(server)

    assert log == ["=@10"]
    assert server.watched_from == ["10", "10", "10"]


async def test_a_kind_that_is_not_installed_is_looked_for_again() -> None:
    server = Server([NotFound("list", "no such kind"), (10, [an_object("a", 5)])], [])

    log = await follow(server)

    assert log == ["absent", "+a", "=uid-a@10"]
