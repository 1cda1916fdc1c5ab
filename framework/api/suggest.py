"""Remedies for words that are not among the known ones.

Called by admission, runtime validation and lint. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["nearest", "suggestion"]


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word that is most like the given one, whatever the case, or None."""
    folded = {name.lower(): name for name in sorted(known)}
    near = get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
    return folded[near[0]] if near else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the remedy for a word that is not known: the nearest one, else all of them."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean {near}?" if near else f"use one of {', '.join(names)}"
