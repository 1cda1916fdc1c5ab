"""Snapshots on file: the same cluster comes back, and what is no snapshot is refused in words."""

from __future__ import annotations

import json

import pytest

from controller.whatif import UnusableFile, dumped, loaded
from controller.whatif.taking import slimmed
from tests.controller.whatif.clusters import a_cluster, web_pod


def test_a_cluster_comes_back_as_it_was_written() -> None:
    cluster = a_cluster()

    back = loaded(dumped(cluster), "a.json")

    assert back == cluster
    assert dumped(back) == dumped(cluster)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"kind: Pod", "is no snapshot"),
        (b"[]", "is no snapshot"),
        (b"{}", "take one with `charpente snapshot`"),
        (b'{"format": "charpente.snapshot", "version": 99}', "of version 99, this program reads version 1"),
        (b'{"format": "charpente.snapshot", "version": 1}', "is damaged"),
    ],
)
def test_what_is_no_snapshot_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(UnusableFile, match=r"^a\.json ") as refused:
        loaded(content, "a.json")

    assert words in str(refused.value)


def test_a_damaged_entry_is_refused() -> None:
    body = json.loads(dumped(a_cluster()))
    body["instanceTypes"]["default"][0]["offerings"][0]["capacity_type"] = "barter"

    with pytest.raises(UnusableFile, match="barter"):
        loaded(json.dumps(body).encode(), "a.json")


def test_what_a_container_runs_is_not_kept() -> None:
    pod = web_pod(0)
    container = pod["spec"]["containers"][0]
    container |= {"env": [{"name": "TOKEN", "value": "secret"}], "command": ["secret"], "image": "secret"}
    pod["metadata"]["managedFields"] = ["secret"]
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "secret", "a": "b"}
    pod["status"]["containerStatuses"] = [{"name": "c", "ready": True, "image": "secret"}]

    slim = slimmed(pod)

    assert "secret" not in json.dumps(slim)
    assert slim["spec"]["containers"] == [{"name": "c", "resources": container["resources"]}]
    assert slim["status"]["containerStatuses"] == [{"name": "c", "ready": True}]
    assert slim["metadata"]["annotations"] == {"a": "b"}
