"""The resource provider protocol over boto3: what `pulumi-resource-aws` says to the engine.

Called by Pulumi's engine over gRPC. Owns the protocol (spec moto, section E); what
each type does is in the resources. Refuses every type, function and property that it
or the SDK does not know, and never answers with an empty success.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NoReturn, TypeVar

import botocore.exceptions
import grpc
from google.protobuf import any_pb2, empty_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from sandbox.pulumi_aws import catalogue, schema
from sandbox.pulumi_aws.checks import Difference, difference, with_defaults
from sandbox.pulumi_aws.functions import FUNCTIONS
from sandbox.pulumi_aws.resource import GONE, Resource
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import DEFAULTS, Properties, aligned, declared, from_struct, to_struct

VERSION = version("pulumi-aws")
T = TypeVar("T")


def type_of(urn: str) -> str:
    """The resource type in a URN."""
    return urn.split("::")[2].rsplit("$", 1)[-1]


def name_of(urn: str) -> str:
    """The logical name in a URN."""
    return urn.split("::", 3)[3]


def described(error: Exception) -> str:
    """An error in the words of the official provider, or with the sandbox's own."""
    if isinstance(error, botocore.exceptions.ClientError):
        found = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return (
            f"operation error {error.operation_name}, https response error StatusCode: {status}, "
            f"api error {found.get('Code')}: {found.get('Message')}"
        )
    return f"{type(error).__name__}: {error}"


def is_gone(error: Exception) -> bool:
    """Whether AWS says that the object is not there."""
    response = getattr(error, "response", {})
    return response.get("Error", {}).get("Code") in GONE


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider instance: the default one, or an explicit `aws.Provider`."""

    def __init__(self) -> None:
        """Start without configuration; the engine sends it before the first resource."""
        self._session = Session.from_config({})

    # Plugin

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """The version, which is that of the SDK in use."""
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, request: Any, context: Any) -> Any:
        """The types carried, with their input names only."""
        resources = {
            token: {"inputProperties": {key: {"$ref": "pulumi.json#/Any"} for key in schema.inputs(token)}}
            for token in catalogue.RESOURCES
        }
        text = json.dumps({"name": "aws", "version": VERSION, "resources": resources})
        return provider_pb2.GetSchemaResponse(schema=text)

    def Cancel(self, request: Any, context: Any) -> Any:
        """Nothing to do: a call that has reached AWS is carried through."""
        return empty_pb2.Empty()

    def Attach(self, request: Any, context: Any) -> Any:
        """The engine's address, for debuggers."""
        return empty_pb2.Empty()

    # Configuration

    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Refuse configuration that the SDK does not know."""
        failures = _failures(schema.provider_problems(from_struct(request.news)))
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        """What differs; another account or region would replace every resource, so region replaces."""
        olds, news = declared(from_struct(request.olds)), declared(from_struct(request.news))
        changed = sorted(key for key in {*olds, *news} if olds.get(key) != news.get(key))
        kinds = provider_pb2.DiffResponse
        return kinds(
            changes=kinds.DIFF_SOME if changed else kinds.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key == "region"],
        )

    def Configure(self, request: Any, context: Any) -> Any:
        """Take the configuration."""
        self._session = Session.from_config(from_struct(request.args) if request.HasField("args") else {})
        return provider_pb2.ConfigureResponse(
            acceptSecrets=False, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    # Resources

    def Check(self, request: Any, context: Any) -> Any:
        """Validate against the SDK, then fill in defaults and a name."""
        token = type_of(request.urn)
        resource = self._resource(token, context)
        news = from_struct(request.news)
        problems = schema.problems(token, declared(news))
        if problems:
            return provider_pb2.CheckResponse(inputs=request.news, failures=_failures(problems))
        olds = from_struct(request.olds)
        filled = with_defaults(resource, news, olds, name_of(request.urn), request.randomSeed)
        return provider_pb2.CheckResponse(inputs=to_struct(filled))

    def Diff(self, request: Any, context: Any) -> Any:
        """Compare inputs with inputs; outputs never count."""
        resource = self._resource(type_of(request.urn), context)
        olds = from_struct(request.old_inputs if request.HasField("old_inputs") else request.olds)
        news = from_struct(request.news)
        return _diff_response(difference(resource, olds, news, list(request.ignoreChanges)))

    def Create(self, request: Any, context: Any) -> Any:
        """Make the object, or in a preview say which outputs will be known."""
        token = type_of(request.urn)
        resource = self._resource(token, context)
        inputs = from_struct(request.properties)
        if request.preview:
            future = schema.future(token, declared(inputs))
            return provider_pb2.CreateResponse(properties=to_struct(future))
        identifier = self._attempt(context, lambda: resource.create(self._session, inputs))
        try:
            resource.configure(self._session, identifier, inputs)
            state = self._state(resource, identifier, inputs)
        except Exception as error:  # noqa: BLE001 (whatever it is, the id must not be lost)
            self._abort_half_made(context, identifier, inputs, error)
        return provider_pb2.CreateResponse(id=identifier, properties=to_struct(state))

    def Read(self, request: Any, context: Any) -> Any:
        """The object as it is; an empty id when it is gone."""
        token = type_of(request.urn)
        resource = self._resource(token, context)
        inputs = from_struct(request.inputs) if request.HasField("inputs") else {}
        state = from_struct(request.properties) if request.HasField("properties") else {}
        known = {**state, **inputs}
        found = self._attempt(context, lambda: self._found(resource, request.id, known))
        if found is None:
            return provider_pb2.ReadResponse(id="")
        outputs = {**found, DEFAULTS: inputs.get(DEFAULTS, [])}
        return provider_pb2.ReadResponse(
            id=request.id, properties=to_struct(outputs), inputs=to_struct(_read_inputs(token, inputs, found))
        )

    def Update(self, request: Any, context: Any) -> Any:
        """Change the object in place."""
        resource = self._resource(type_of(request.urn), context)
        news = from_struct(request.news)
        olds = from_struct(request.old_inputs if request.HasField("old_inputs") else request.olds)
        if request.preview:
            state = {**from_struct(request.olds), **declared(news)}
            return provider_pb2.UpdateResponse(properties=to_struct(state))
        self._attempt(context, lambda: resource.update(self._session, request.id, olds, news))
        after = self._attempt(context, lambda: self._state(resource, request.id, news))
        return provider_pb2.UpdateResponse(properties=to_struct(after))

    def Delete(self, request: Any, context: Any) -> Any:
        """Remove the object; one that is not there is removed already."""
        resource = self._resource(type_of(request.urn), context)
        state = from_struct(request.properties)

        def remove() -> None:
            try:
                resource.delete(self._session, request.id, state)
            except botocore.exceptions.ClientError as error:
                if not is_gone(error):
                    raise

        self._attempt(context, remove)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        """Call a function."""
        function = FUNCTIONS.get(request.tok)
        if function is None:
            known = ", ".join(sorted(name.rsplit(":", 1)[-1] for name in FUNCTIONS))
            _refuse(
                context,
                grpc.StatusCode.UNIMPLEMENTED,
                f"{request.tok}: the sandbox's AWS provider does not carry this function; it has {known}",
            )
        result = self._attempt(context, lambda: function(self._session, from_struct(request.args)))
        return provider_pb2.InvokeResponse(**{"return": to_struct(result)})

    def Construct(self, request: Any, context: Any) -> Any:
        """Refuse: the AWS package has no components."""
        _refuse(context, grpc.StatusCode.UNIMPLEMENTED, "the AWS package has no components")

    # Steps

    def _resource(self, token: str, context: Any) -> Resource:
        try:
            return catalogue.resource(token)
        except catalogue.NotCarried as error:
            _refuse(context, grpc.StatusCode.UNIMPLEMENTED, str(error))

    def _found(self, resource: Resource, identifier: str, inputs: Properties) -> Properties | None:
        try:
            found = resource.read(self._session, identifier, inputs)
        except botocore.exceptions.ClientError as error:
            if is_gone(error):
                return None
            raise
        if found is None:
            return None
        strange = set(found) - schema.outputs(resource.type)
        if strange:
            raise ValueError(f"{resource.type} has no outputs {sorted(strange)} in pulumi_aws {VERSION}")
        return {key: value for key, value in found.items() if value is not None}

    def _state(self, resource: Resource, identifier: str, inputs: Properties) -> Properties:
        found = self._found(resource, identifier, inputs)
        if found is None:
            raise ValueError(f"{resource.type} {identifier} is gone right after it was made")
        return {**found, DEFAULTS: inputs.get(DEFAULTS, [])}

    def _attempt(self, context: Any, action: Callable[[], T]) -> T:
        try:
            return action()
        except Exception as error:  # noqa: BLE001 (every failure becomes the call's answer)
            if not isinstance(error, botocore.exceptions.ClientError):
                traceback.print_exc(file=sys.stderr)
            _refuse(context, grpc.StatusCode.UNKNOWN, described(error))

    def _abort_half_made(
        self, context: Any, identifier: str, inputs: Properties, error: Exception
    ) -> NoReturn:
        """Fail so that the engine keeps the id and finishes the object at the next update."""
        half_made = provider_pb2.ErrorResourceInitFailed(
            id=identifier,
            properties=to_struct(inputs),
            inputs=to_struct(inputs),
            reasons=[described(error)],
        )
        detail = any_pb2.Any()
        detail.Pack(half_made)
        status = status_pb2.Status(
            code=grpc.StatusCode.UNKNOWN.value[0], message=described(error), details=[detail]
        )
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        _refuse(context, grpc.StatusCode.UNKNOWN, described(error))


def _refuse(context: Any, code: Any, text: str) -> NoReturn:
    """End the call with an error; gRPC's abort raises, which its types do not say."""
    context.abort(code, text)
    raise AssertionError(text)


def _failures(problems: tuple[schema.Problem, ...]) -> list[Any]:
    return [provider_pb2.CheckFailure(property=p.path, reason=p.reason) for p in problems]


def _diff_response(found: Difference) -> Any:
    kinds = provider_pb2.PropertyDiff
    response = provider_pb2.DiffResponse
    detail: Mapping[str, Any] = {
        change.property: kinds(
            kind=kinds.Kind.Value(f"{change.kind}_REPLACE" if change.replaces else change.kind.value),
            inputDiff=True,
        )
        for change in found.changes
    }
    return response(
        changes=response.DIFF_SOME if found.changes else response.DIFF_NONE,
        diffs=[change.property for change in found.changes],
        replaces=[change.property for change in found.changes if change.replaces],
        detailedDiff=detail,
        hasDetailedDiff=True,
        deleteBeforeReplace=found.delete_first,
    )


def _read_inputs(token: str, inputs: Properties, found: Properties) -> Properties:
    """The inputs that would make what was found; for an import, every input that has a value."""
    if not inputs:
        return {key: found[key] for key in schema.inputs(token) if found.get(key) not in (None, "", [], {})}
    read = {key: aligned(value, found[key]) for key, value in inputs.items() if key in found}
    kept = {key: value for key, value in inputs.items() if key not in found}
    return {**kept, **read}
