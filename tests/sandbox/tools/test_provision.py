"""Programs are downloaded verified or built, once, and a failure names the program and the mend."""

from __future__ import annotations

import fcntl
import hashlib
import threading
from pathlib import Path

import pytest

from sandbox.errors import ToolMissing
from sandbox.tools import build, provision, release
from sandbox.tools.catalogue import Group
from sandbox.tools.release import ReleaseUnavailable, verify


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CHARPENTE_TOOLS", raising=False)
    return tmp_path / "charpente" / "tools"


def no_network(monkeypatch: pytest.MonkeyPatch, *, asked: list[str] | None = None) -> None:
    def refuse(url: str, timeout: float) -> None:
        if asked is not None:
            asked.append(url)
        raise OSError("no route to host")

    monkeypatch.setattr(release.urllib.request, "urlopen", refuse)
    monkeypatch.setattr(release, "_silent_hosts", set())


def fake_build(group: Group, destination: Path, scratch: Path) -> None:
    for name in group.programs:
        (destination / name).write_text("#!/bin/sh\n")
        (destination / name).chmod(0o755)


def test_without_network_and_go_the_error_names_the_program_and_the_mend(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_network(monkeypatch)
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setattr(build, "DEFAULT_GO", "/nowhere/go")

    with pytest.raises(ToolMissing) as caught:
        provision.ensure(["etcd"])

    assert str(caught.value).startswith("etcd: no release could be downloaded and Go is not installed")
    assert "install Go" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_program_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ToolMissing, match="minikube: not a program the sandbox knows; use one of etcd"):
        provision.ensure(["minikube"])


def test_what_is_built_is_kept_and_not_built_twice(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_network(monkeypatch)
    built: list[str] = []
    monkeypatch.setattr(provision, "build", lambda g, d, s: (built.append(g.name), fake_build(g, d, s)))

    first = provision.find("kube-apiserver")
    second = provision.find("kubectl")

    assert built == ["kubernetes"]
    assert (first.parent, second.parent) == (empty_cache / "kubernetes-1.34.4",) * 2
    assert [p.name for p in empty_cache.glob(".work-*")] == []


def test_a_failed_build_leaves_nothing_behind(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_network(monkeypatch)

    def fail(group: Group, destination: Path, scratch: Path) -> None:
        (destination / "etcd").write_text("half")
        raise ToolMissing("etcd", "go build failed", "look")

    monkeypatch.setattr(provision, "build", fail)

    with pytest.raises(ToolMissing):
        provision.find("etcd")

    assert [p.name for p in empty_cache.iterdir()] == [".lock"]


def test_a_second_process_waits_for_the_first_and_uses_what_it_made(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_network(monkeypatch)
    monkeypatch.setattr(provision, "build", lambda *_: pytest.fail("built although another process did"))
    empty_cache.mkdir(parents=True)
    found: list[Path] = []
    with (empty_cache / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=lambda: found.append(provision.find("etcd")))
        second.start()
        second.join(0.2)
        waited = second.is_alive()
        made = empty_cache / "etcd-3.6.16"
        made.mkdir()
        (made / "etcd").write_text("#!/bin/sh\n")
        (made / "etcd").chmod(0o755)
    second.join(5)

    assert waited
    assert found == [made / "etcd"]


def test_a_silent_host_is_asked_once(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    no_network(monkeypatch, asked=asked)
    monkeypatch.setattr(provision, "build", fake_build)

    provision.ensure(["etcd", "pulumi"])  # both releases are on the same host

    assert len(asked) == 1


CONTENT = b"a program"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize(
    "checksums", [DIGEST, f"{'0' * 64}  other\n{DIGEST}  tool.tgz\n", f"{DIGEST} *tool.tgz"]
)
def test_a_checksum_is_found_for_the_file(checksums: str) -> None:
    verify(CONTENT, checksums, file="tool.tgz")


@pytest.mark.parametrize("checksums", ["0" * 64, f"{DIGEST}  other.tgz", ""])
def test_a_download_that_the_release_does_not_vouch_for_is_refused(checksums: str) -> None:
    with pytest.raises(ReleaseUnavailable, match=r"tool\.tgz"):
        verify(CONTENT, checksums, file="tool.tgz")
