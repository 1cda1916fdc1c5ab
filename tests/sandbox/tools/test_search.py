"""Where programs are looked for, in which order, and what is not accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.tools.catalogue import GROUPS, group_of
from sandbox.tools.search import cached, locate


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty machine: nothing on PATH but a shell, nothing in the cache."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CHARPENTE_TOOLS", raising=False)
    return tmp_path


def test_nothing_is_found_on_an_empty_machine(machine: Path) -> None:
    assert locate("etcd") is None


def test_the_cache_is_found_by_group_and_version(machine: Path) -> None:
    kept = program(cached(group_of("etcd"), "etcd").parent, "etcd", "etcd Version: 3.6.16")

    assert locate("etcd") == kept
    assert kept.parent.name == "etcd-3.6.16"


def test_path_comes_before_the_cache(machine: Path) -> None:
    program(cached(group_of("etcd"), "etcd").parent, "etcd", "etcd Version: 3.6.16")
    on_path = program(machine / "path", "etcd", "etcd Version: 3.6.2")

    assert locate("etcd") == on_path


def test_the_named_folder_comes_first_whatever_its_version(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(machine / "path", "etcd", "etcd Version: 3.6.2")
    named = program(machine / "named", "etcd", "etcd Version: 2.0.0")
    monkeypatch.setenv("CHARPENTE_TOOLS", str(machine / "named"))

    assert locate("etcd") == named


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("etcd", "etcd Version: 3.4.30"),
        ("kube-apiserver", "Kubernetes v1.31.0"),
        ("pulumi", "v2.9.0"),
        ("kwok", "no version at all"),
        ("pulumi-resource-kubernetes", "4.34.2"),
    ],
)
def test_a_program_on_path_of_another_version_is_passed_over(machine: Path, name: str, says: str) -> None:
    program(machine / "path", name, says)

    assert locate(name) is None


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
def test_the_pinned_modules_pin_the_version_of_the_catalogue(group) -> None:  # type: ignore[no-untyped-def]
    modules = Path(__file__).parents[3] / "sandbox" / "tools" / "modules" / group.name
    pinned = (modules / "go.mod").read_text()

    if group.name == "pulumi-kubernetes":  # its module's tags do not follow the provider's version
        assert group.version in (modules / "main.go").read_text()
    else:
        assert f"v{group.version}" in pinned
    assert (modules / "go.sum").is_file()
