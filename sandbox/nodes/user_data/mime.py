"""The parts of user data: a MIME multipart archive, or one piece of text."""

from __future__ import annotations

from email import message_from_string

import attrs

__all__ = ["Part", "parts"]


@attrs.frozen
class Part:
    """One piece of user data; `content_type` is empty when the text does not say."""

    content_type: str
    content: str


def parts(content: str) -> list[Part]:
    """Split user data as cloud-init does; text that is not MIME is one part."""
    if not content.lstrip().startswith(("MIME-Version:", "Content-Type:")):
        return [Part("", content)]
    found = []
    for section in message_from_string(content.lstrip()).walk():
        if section.is_multipart():
            continue
        payload = section.get_payload(decode=True)
        text = payload.decode(errors="replace") if isinstance(payload, bytes) else ""
        found.append(Part(section.get_content_type(), text))
    return found
