"""Writing EC2 answers: boto3-shaped values to XML by botocore's model, quickly and strictly.

moto's serializer walks every member of every shape; this one walks the value, so that a page of 1,000
instances takes milliseconds. A key the model does not have is an error, so a misspelt field cannot hide.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from moto.core.utils import get_service_model

__all__ = ["document", "element", "items", "output_shape"]

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


@cache
def output_shape(operation: str) -> Any:
    """Return botocore's shape of an operation's answer."""
    return get_service_model("ec2").operation_model(operation).output_shape


@cache
def _members(shape: Any) -> Mapping[str, tuple[str, Any]]:
    """Return member name → (XML tag, shape) of a structure."""
    return {name: (member.serialization.get("name", name), member) for name, member in shape.members.items()}


def element(tag: str, shape: Any, value: Any) -> str:
    """Write one value; "" for None."""
    if value is None:
        return ""
    return f"<{tag}>{content(shape, value)}</{tag}>"


def content(shape: Any, value: Any) -> str:
    """Write what stands inside the element of a value. A string marked as `items` is taken as it is."""
    kind = shape.type_name
    if kind == "structure":
        members = _members(shape)
        return "".join(element(*members[name], part) for name, part in value.items())
    if kind == "list":
        if isinstance(value, _Items):
            return value
        tag = shape.member.serialization.get("name", "item")
        return "".join(element(tag, shape.member, part) for part in value)
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "timestamp":
        return _timestamp(value)
    return escape(str(value))


class _Items(str):
    """The inside of a list that is written already."""


def items(fragments: list[str]) -> str:
    """Return a list value made of `<item>` elements that are written already."""
    return _Items("".join(fragments))


def _timestamp(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    return escape(str(value))


def document(operation: str, value: Mapping[str, Any], request_id: str) -> str:
    """Write a whole answer."""
    inside = content(output_shape(operation), value) if value else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><{operation}Response xmlns="{NAMESPACE}">'
        f"<requestId>{request_id}</requestId>{inside}</{operation}Response>"
    )
