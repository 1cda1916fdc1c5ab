"""The base of the EC2 action classes: parameters, filters, pages and answers.

Each module of this package subclasses `Ec2Actions` with the actions it replaces or adds; `service.py` puts
them in front of moto's own `EC2Response`, so every other action stays moto's.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from sandbox.aws.ec2.xml import document
from sandbox.aws.errors import REQUEST_ID
from sandbox.aws.world import World

__all__ = ["Ec2Actions", "Filters", "matcher"]

Item = TypeVar("Item")
Field = Callable[[Item, str], Iterable[str] | None]
"""Values of a filter name for an item; None when the name is not a filter of the operation."""


def matcher(pattern: str) -> Callable[[str], object]:
    """Return a test for an EC2 filter value, where `*` and `?` are wildcards and `\\` escapes them."""
    if not re.search(r"[*?\\]", pattern):
        return pattern.__eq__
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"*": ".*", "?": "."}
    text = "".join(wild.get(part, re.escape(part[-1])) for part in parts)
    return re.compile(text, re.DOTALL).fullmatch


class Filters:
    """The filters of a request: all must hold, each by any of its values."""

    def __init__(self, raw: Sequence[Mapping[str, Any]] | None) -> None:
        """Read the wire form, a list of Name and Values."""
        self._tests = [(f["Name"], [matcher(str(v)) for v in f.get("Values", [])]) for f in raw or ()]

    def select(self, candidates: Iterable[Item], field: Field[Item]) -> list[Item]:
        """Return the candidates that pass, in order. Raises InvalidParameterValue for an unknown filter."""
        found = list(candidates)
        for name, tests in self._tests:
            found = [item for item in found if self._passes(field(item, name), name, tests)]
        return found

    @staticmethod
    def _passes(values: Iterable[str] | None, name: str, tests: Sequence[Callable[[str], object]]) -> bool:
        if values is None:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        return any(test(value) for value in values for test in tests)


def tag_values(tags: Mapping[str, str], name: str) -> Iterable[str] | None:
    """Return the values of the filters every taggable resource has: `tag:<key>`, `tag-key`, `tag-value`."""
    if name.startswith("tag:"):
        value = tags.get(name[4:])
        return () if value is None else (value,)
    if name == "tag-key":
        return tags.keys()
    return tags.values() if name == "tag-value" else None


class Ec2Actions(EC2Response):  # type: ignore[misc]  # moto is not typed here
    """What the action modules share. `world` is set on the class that the server installs."""

    world: ClassVar[World]

    def parameter(self, name: str, default: Any = None) -> Any:
        """Return a request parameter by its boto3 path, for example "LaunchTemplate.Version"."""
        return self._get_param(name, default)

    def request_filters(self) -> Filters:
        """Return the request's filters."""
        return Filters(self._get_param("Filters") or self._get_param("Filter"))

    def tags_of(self, resource_id: str) -> Mapping[str, str]:
        """Return a resource's tags, {} when it has none."""
        tags: Mapping[str, str] = self.ec2_backend.tags.get(resource_id, {})
        return tags

    def tag_list(self, resource_id: str) -> list[dict[str, str]]:
        """Return a resource's tags in wire form."""
        return [{"Key": key, "Value": value} for key, value in self.tags_of(resource_id).items()]

    def page(self, found: Sequence[Item], default_size: int) -> tuple[Sequence[Item], str | None]:
        """Return the page asked for by MaxResults and NextToken, and the next token."""
        size = int(self.parameter("MaxResults") or default_size)
        token = self.parameter("NextToken")
        try:
            start = int(base64.b64decode(token, validate=True)) if token else 0
        except ValueError as exc:
            raise EC2ClientError("InvalidParameterValue", "Unable to parse pagination token") from exc
        end = start + size
        following = base64.b64encode(str(end).encode()).decode() if end < len(found) else None
        return found[start:end], following

    def answer(self, operation: str, value: Mapping[str, Any]) -> str:
        """Write the answer of an operation."""
        return document(operation, value, REQUEST_ID)
