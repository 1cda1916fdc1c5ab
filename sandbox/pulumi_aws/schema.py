"""What the `pulumi_aws` SDK says about a resource type: names, types, what is required.

Called by the provider's Check. The SDK carries no schema file, so everything is
derived from the signatures and annotations of its classes (spec moto, section E).
Owns validation of names and types; ForceNew and defaults are not in the SDK and
stand with each resource.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import threading
import typing
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs
import pulumi
import pulumi._types as pulumi_types
import pulumi_aws

from sandbox.pulumi_aws.wire import UNKNOWN, Value, is_unknown

_SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@attrs.frozen(kw_only=True)
class Problem:
    """One property that the SDK would not accept."""

    path: str
    """Such as `vpcConfig.subnetIds[0]`."""
    reason: str


@attrs.frozen(kw_only=True)
class Property:
    """One input property of a resource or of a nested object."""

    type: Any
    required: bool


@lru_cache(maxsize=1)
def tokens() -> Mapping[str, str]:
    """Every resource type of the SDK → the module that defines it, read without importing them all."""
    source = (Path(pulumi_aws.__file__).parent / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'resource_modules="""(.*?)"""', source, re.DOTALL)
    if found is None:
        raise ValueError("pulumi_aws/__init__.py has no resource_modules; this SDK release is not understood")
    return {
        token: f"{module['fqn']}:{name}"
        for module in json.loads(found.group(1))
        for token, name in module["classes"].items()
    }


_importing = threading.Lock()
"""The engine asks for many types at once, and modules of the SDK that import one another must not race."""


@lru_cache(maxsize=256)
def _resource_class(token: str) -> Any:
    module, name = tokens()[token].split(":")
    with _importing:
        return getattr(importlib.import_module(module), name)


@lru_cache(maxsize=256)
def inputs(token: str) -> Mapping[str, Property]:
    """The input properties of a resource type, by wire name."""
    resource = _resource_class(token)
    args = getattr(importlib.import_module(resource.__module__), f"{resource.__name__}Args")
    return _properties(args)


@lru_cache(maxsize=256)
def outputs(token: str) -> frozenset[str]:
    """The wire names of all outputs of a resource type."""
    resource = _resource_class(token)
    names = pulumi_types.resource_py_to_pulumi_names(resource)
    return frozenset(names.get(name, name) for name in pulumi_types.resource_types(resource))


@lru_cache(maxsize=256)
def nested_outputs(token: str) -> Mapping[str, frozenset[str]]:
    """Outputs that are one object → the wire names of its fields, some of which AWS fills in."""
    kinds = pulumi_types.resource_types(_resource_class(token))
    names = pulumi_types.resource_py_to_pulumi_names(_resource_class(token))
    plain = {names.get(name, name): _plain(kind) for name, kind in kinds.items()}
    return {
        name: frozenset(pulumi_types.output_type_types(kind))
        for name, kind in plain.items()
        if inspect.isclass(kind) and pulumi_types.is_output_type(kind)
    }


@lru_cache(maxsize=1)
def provider_inputs() -> Mapping[str, Property]:
    """The configuration of the provider itself."""
    return _properties(pulumi_aws.ProviderArgs)


@lru_cache(maxsize=512)
def _properties(args: Any) -> Mapping[str, Property]:
    names = pulumi_types.input_type_py_to_pulumi_names(args)
    hints = pulumi_types.input_type_types(args)
    parameters = inspect.signature(args.__init__).parameters.values()
    return {
        names[p.name]: Property(type=_plain(hints.get(names[p.name], Any)), required=p.default is p.empty)
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and not p.name.startswith("__")
    }


def _is_wrapper(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    return (
        kind is type(None)
        or origin is pulumi.Output
        or getattr(origin, "__name__", "") == "Awaitable"
        or (inspect.isclass(kind) and kind.__name__.endswith("ArgsDict"))
    )


def _plain(kind: Any) -> Any:
    """Unwrap Input[X], which is Union[X, Awaitable[X], Output[X]]."""
    if typing.get_origin(kind) is not typing.Union:
        return kind
    options = list(dict.fromkeys(_plain(arg) for arg in typing.get_args(kind) if not _is_wrapper(arg)))
    return options[0] if len(options) == 1 else typing.Union[tuple(options)]  # noqa: UP007 (built at run time)


def future(token: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The outputs of an object that is still to be made: what was given, the rest unknown."""
    known = dict(values)
    for name, fields in nested_outputs(token).items():
        if isinstance(known.get(name), Mapping):
            known[name] = {**dict.fromkeys(fields, UNKNOWN), **known[name]}
    return {**dict.fromkeys(outputs(token), UNKNOWN), **known}


def problems(token: str, values: Mapping[str, Value]) -> tuple[Problem, ...]:
    """Everything about these inputs that the SDK's types do not allow; unknown values pass."""
    return tuple(_object_problems(inputs(token), values, ""))


def provider_problems(values: Mapping[str, Value]) -> tuple[Problem, ...]:
    """Names of the provider's configuration that do not exist."""
    known = {*provider_inputs(), "version", "pluginDownloadURL"}
    return tuple(
        Problem(path=key, reason=f"unexpected provider property '{key}'")
        for key in sorted(values)
        if key not in known and not key.startswith("__")
    )


def _object_problems(
    known: Mapping[str, Property], values: Mapping[str, Value], prefix: str
) -> typing.Iterator[Problem]:
    for key in values:
        if key not in known and not key.startswith("__"):
            yield Problem(path=f"{prefix}{key}", reason=f"unexpected property '{key}'")
    for key, prop in known.items():
        value = values.get(key)
        if value is not None:
            yield from _value_problems(prop.type, value, f"{prefix}{key}")
        elif prop.required:
            yield Problem(path=f"{prefix}{key}", reason=f"missing required property '{key}'")


def _value_problems(kind: Any, value: Value, path: str) -> typing.Iterator[Problem]:
    kind = _plain(kind)
    if value is None or kind is Any or (isinstance(value, str) and is_unknown(value)):
        return
    origin = typing.get_origin(kind)
    name = getattr(origin, "__name__", "")
    if origin is typing.Union:
        yield from _union_problems(kind, value, path)
    elif kind in _SCALARS:
        if not _fits(kind, value):
            yield Problem(path=path, reason=f"expected type '{_SCALARS[kind]}', got {type(value).__name__}")
    elif name in ("list", "Sequence"):
        yield from _list_problems(kind, value, path)
    elif name in ("dict", "Mapping"):
        yield from _map_problems(kind, value, path)
    elif inspect.isclass(kind) and pulumi_types.is_input_type(kind):
        yield from _nested_problems(kind, value, path)


def _union_problems(kind: Any, value: Value, path: str) -> typing.Iterator[Problem]:
    attempts = [list(_value_problems(option, value, path)) for option in typing.get_args(kind)]
    if all(attempts):
        yield from attempts[0]


def _list_problems(kind: Any, value: Value, path: str) -> typing.Iterator[Problem]:
    if not isinstance(value, list):
        yield Problem(path=path, reason=f"expected a list, got {type(value).__name__}")
        return
    for index, item in enumerate(value):
        yield from _value_problems(typing.get_args(kind)[0], item, f"{path}[{index}]")


def _map_problems(kind: Any, value: Value, path: str) -> typing.Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(path=path, reason=f"expected a map, got {type(value).__name__}")
        return
    for key, item in value.items():
        yield from _value_problems(typing.get_args(kind)[1], item, f"{path}.{key}")


def _nested_problems(kind: Any, value: Value, path: str) -> typing.Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(path=path, reason=f"expected an object, got {type(value).__name__}")
        return
    yield from _object_problems(_properties(kind), value, f"{path}.")


def _fits(kind: Any, value: Value) -> bool:
    if kind is str:
        return isinstance(value, str)
    if kind is bool:
        return isinstance(value, bool)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (kind is float or float(value).is_integer())
