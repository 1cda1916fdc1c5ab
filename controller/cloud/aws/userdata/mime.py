"""MIME multipart user data, as cloud-init reads it.

Used by the AL2 and AL2023 renderers. Owns the boundary, the reading of a user's own archive and the
order of parts; knows nothing of what the parts say.
"""

from __future__ import annotations

from collections.abc import Sequence
from email import message_from_string
from email.message import Message
from typing import Final

import attrs

__all__ = ["NODECONFIG", "SHELL", "MimePart", "is_mime", "read_mime", "write_mime"]

BOUNDARY: Final = "//"
SHELL: Final = 'text/x-shellscript; charset="us-ascii"'
NODECONFIG: Final = "application/node.eks.aws"


@attrs.frozen(kw_only=True)
class MimePart:
    """One part: its content type, as it stands in the header, and its text."""

    content_type: str
    text: str


def is_mime(text: str) -> bool:
    """Tell whether user data is a MIME archive already, by its first header."""
    return text.lstrip().startswith(("MIME-Version:", "Content-Type:"))


def read_mime(text: str) -> tuple[MimePart, ...]:
    """Return the parts of an archive in their order; an archive that is not multipart is one part."""
    message = message_from_string(text.lstrip())
    leaves = [part for part in message.walk() if not part.is_multipart()]
    return tuple(
        MimePart(content_type=str(part.get("Content-Type", SHELL)), text=_text(part)) for part in leaves
    )


def _text(part: Message) -> str:
    decoded = part.get_payload(decode=True)
    return decoded.decode("utf-8", "replace") if isinstance(decoded, bytes) else str(decoded)


def write_mime(parts: Sequence[MimePart]) -> str:
    """Return the archive; carriage returns are taken out, since cloud-init's shells choke on them."""
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    for part in parts:
        lines += [f"--{BOUNDARY}", f"Content-Type: {part.content_type}", "", part.text.rstrip("\n"), ""]
    lines += [f"--{BOUNDARY}--", ""]
    return "\n".join(lines).replace("\r", "")
