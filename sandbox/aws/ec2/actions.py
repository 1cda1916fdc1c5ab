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

__all__ = ["Ec2Actions", "Fields", "Filters", "matcher"]

Item = TypeVar("Item")
Fields = Mapping[str, Callable[[Item], object]]
"""Filter name → how to read its value (or list of values, or None) from an item."""
Tags = Mapping[str, str]


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

    def select(
        self, candidates: Iterable[Item], fields: Fields[Item], tags: Callable[[Item], Tags] | None = None
    ) -> list[Item]:
        """Return the candidates that pass, in order; `tags` adds the filters of taggable resources.

        Raises InvalidParameterValue for a filter the operation does not have, whatever there is to filter.
        """
        found = list(candidates)
        for name, tests in self._tests:
            read = fields.get(name) or _tag_field(name, tags)
            if read is None:
                raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
            found = [item for item in found if any(t(v) for v in _texts(read(item)) for t in tests)]
        return found


def _tag_field(name: str, tags: Callable[[Item], Tags] | None) -> Callable[[Item], object] | None:
    """Return how to read `tag:<key>`, `tag-key` or `tag-value`, None for another name."""
    if tags is None:
        return None
    if name.startswith("tag:"):
        return lambda item: tags(item).get(name[4:])
    if name == "tag-key":
        return lambda item: list(tags(item))
    return (lambda item: list(tags(item).values())) if name == "tag-value" else None


def _texts(value: object) -> Iterable[str]:
    """Return a field's value as filters compare it: text, booleans in small letters, every one of a list."""
    if value is None:
        return ()
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return (str(value).lower() if isinstance(value, bool) else str(value),)


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

    def tags_by_id(self, resource: Any) -> Mapping[str, str]:
        """Return the tags of a resource that has an id."""
        return self.tags_of(resource.id)

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
