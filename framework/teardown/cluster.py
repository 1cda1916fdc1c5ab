"""The cluster's side of a teardown, by the official Kubernetes client.

Called by those that run `framework.teardown`. Owns how the few requests are made; never decides what to
delete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
import urllib3.exceptions
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from framework.api import labels
from framework.teardown.values import Kind, Object

_GROUPS: Mapping[Kind, str] = {
    Kind.POOL: labels.GROUP,
    Kind.CLAIM: labels.GROUP,
    Kind.NODE_CLASS: labels.AWS_GROUP,
}
_VERSION = "v1"
_MERGE = "application/merge-patch+json"
_TIMEOUT_S = 30
_LEASE = "karpenter-leader-election"
_LEASE_STALE = timedelta(seconds=60)
"""Four times the lease's duration: whoever held it is gone."""


@attrs.define(kw_only=True)
class KubernetesCluster:
    """A cluster by its kubeconfig."""

    api: client.ApiClient
    namespace: str
    """Where the controller runs and keeps its lease."""
    now: Callable[[], datetime]

    @classmethod
    def connect(
        cls, kubeconfig: Mapping[str, Any], namespace: str, now: Callable[[], datetime]
    ) -> KubernetesCluster:
        """Prepare the client; nothing is sent but what the kubeconfig's own command asks for a token."""
        settings = client.Configuration()
        settings.retries = False
        api = config.new_client_from_config_dict(
            dict(kubeconfig), persist_config=False, client_configuration=settings
        )
        return cls(api=api, namespace=namespace, now=now)

    @property
    def _custom(self) -> client.CustomObjectsApi:
        return client.CustomObjectsApi(self.api)

    @property
    def _core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api)

    def reachable(self) -> bool:
        """Whether the API server answers; a refusal is an answer, and raised."""
        try:
            client.VersionApi(self.api).get_code(_request_timeout=_TIMEOUT_S)
        except (urllib3.exceptions.HTTPError, OSError):
            return False
        return True

    def objects(self, kind: Kind) -> Sequence[Object]:
        """All objects of one of the custom kinds."""
        try:
            found: Any = self._custom.list_cluster_custom_object(
                _GROUPS[kind], _VERSION, kind.value, _request_timeout=_TIMEOUT_S
            )
        except ApiException as error:
            if error.status == 404:
                return ()
            raise
        return tuple(found["items"])

    def delete(self, kind: Kind, name: str) -> None:
        """Begin deleting."""
        if kind is Kind.NODE:
            _unless_missing(lambda: self._core.delete_node(name, _request_timeout=_TIMEOUT_S))
        else:
            _unless_missing(
                lambda: self._custom.delete_cluster_custom_object(
                    _GROUPS[kind], _VERSION, kind.value, name, _request_timeout=_TIMEOUT_S
                )
            )

    def annotate(self, kind: Kind, name: str, annotations: Mapping[str, str]) -> None:
        """Set annotations."""
        self._patch(kind, name, {"metadata": {"annotations": dict(annotations)}})

    def drop_finalizer(self, kind: Kind, name: str, finalizer: str) -> None:
        """Take one finalizer off; fails when the object changed meanwhile, for the next look to do again."""
        found = self._read(kind, name)
        if found is None or finalizer not in (found["metadata"].get("finalizers") or ()):
            return
        left = [each for each in found["metadata"]["finalizers"] if each != finalizer]
        version = found["metadata"]["resourceVersion"]
        try:
            self._patch(kind, name, {"metadata": {"finalizers": left, "resourceVersion": version}})
        except ApiException as error:
            if error.status != 409:
                raise

    def _read(self, kind: Kind, name: str) -> Object | None:
        if kind is Kind.NODE:
            found = _unless_missing(lambda: self._core.read_node(name, _request_timeout=_TIMEOUT_S))
            raw: Object | None = None if found is None else self.api.sanitize_for_serialization(found)
            return raw
        custom: Object | None = _unless_missing(
            lambda: self._custom.get_cluster_custom_object(
                _GROUPS[kind], _VERSION, kind.value, name, _request_timeout=_TIMEOUT_S
            )
        )
        return custom

    def _patch(self, kind: Kind, name: str, body: dict[str, Any]) -> None:
        options: dict[str, Any] = {"_request_timeout": _TIMEOUT_S, "_content_type": _MERGE}
        if kind is Kind.NODE:
            _unless_missing(lambda: self._core.patch_node(name, body, **options))
        else:
            _unless_missing(
                lambda: self._custom.patch_cluster_custom_object(
                    _GROUPS[kind], _VERSION, kind.value, name, body, **options
                )
            )

    def blocking_budgets(self) -> Sequence[str]:
        """Budgets that have pods and allow none of them to be evicted."""
        found: Any = self._custom.list_cluster_custom_object(
            "policy", "v1", "poddisruptionbudgets", _request_timeout=_TIMEOUT_S
        )
        return tuple(
            f"{each['metadata']['namespace']}/{each['metadata']['name']}"
            for each in found["items"]
            if (status := each.get("status") or {}).get("expectedPods")
            and not status.get("disruptionsAllowed")
        )

    def controller_answers(self) -> bool:
        """Whether the leader lease was renewed in the last minute."""
        lease: Any = _unless_missing(
            lambda: self._custom.get_namespaced_custom_object(
                "coordination.k8s.io", "v1", self.namespace, "leases", _LEASE, _request_timeout=_TIMEOUT_S
            )
        )
        renewed = ((lease or {}).get("spec") or {}).get("renewTime")
        if not renewed or not lease["spec"].get("holderIdentity"):
            return False
        return self.now() - datetime.fromisoformat(renewed) < _LEASE_STALE


def _unless_missing(call: Callable[[], Any]) -> Any:
    """The answer, None for an object that is not there."""
    try:
        return call()
    except ApiException as error:
        if error.status == 404:
            return None
        raise
