from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.language_host.host import entry_point


def test_a_folder_is_run_by_its_main(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").touch()

    assert entry_point(tmp_path, ".") == tmp_path / "__main__.py"


def test_a_named_file_is_run(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()

    assert entry_point(tmp_path, "app.py") == tmp_path / "app.py"


def test_a_folder_without_a_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"point `main` in Pulumi\.yaml"):
        entry_point(tmp_path, "")
