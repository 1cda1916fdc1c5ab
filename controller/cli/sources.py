"""Manifest files as text, for every command that takes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

__all__ = ["read_sources"]

_SUFFIXES: Final = (".yaml", ".yml", ".json")


def read_sources(path: str) -> list[tuple[str, str]]:
    """Return names and texts of a file, of every manifest in a directory, or of standard input for `-`.

    Raises UsageError naming what cannot be read.
    """
    if path == "-":
        return [("<stdin>", sys.stdin.read())]
    place = Path(path)
    found = [place]
    if place.is_dir():
        found = sorted(each for each in place.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    try:
        return [(str(each), each.read_text(encoding="utf-8")) for each in found]
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not UTF-8"
        raise click.UsageError(f"{path} cannot be read: {reason}; give a YAML or JSON file") from exc
