"""The same tables of manifests, judged by a real kube-apiserver that has our CRDs."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from framework.api import CapacityBuffer, NodePool, crds, kind_of
from framework.api.crds import ALL_GATES
from framework.api.schema import KindInfo
from sandbox.kubernetes.api import Api, ApiError
from sandbox.kubernetes.control_plane import ControlPlane
from tests.framework.api.admission_table import AdmissionCase, admission_cases

pytestmark = pytest.mark.sandbox

GATES = frozenset({"CapacityBuffer"})
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SEEDS = Path(__file__).parent / "seed_manifests.yaml"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    plane = ControlPlane(Path(tmp_path_factory.mktemp("apiserver")))
    plane.start()
    try:
        client = Api(plane.admin)
        for definition in crds(GATES):
            client.create(DEFINITIONS, definition)
        for definition in crds(GATES):
            _wait_established(client, definition["metadata"]["name"])
        yield client
    finally:
        plane.stop()


def _wait_established(client: Api, name: str) -> None:
    for _ in range(100):
        found = client.get(f"{DEFINITIONS}/{name}")
        conditions = found.get("status", {}).get("conditions", ())
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            assert not [c for c in conditions if c["type"] == "NonStructuralSchema"]
            return
        time.sleep(0.1)
    raise AssertionError(f"{name} is not established")


def _collection(info: KindInfo) -> str:
    namespace = "/namespaces/default" if info.scope == "Namespaced" else ""
    return f"/apis/{info.api_version}{namespace}/{info.plural}"


def _create(client: Api, manifest: Any) -> Any:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    return client.create(f"{_collection(kind.INFO)}?fieldValidation=Strict", manifest)


def _update(client: Api, stored: Any, manifest: Any) -> Any:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    body = copy.deepcopy(manifest)
    body["metadata"] = {**stored["metadata"], **body["metadata"]}
    path = f"{_collection(kind.INFO)}/{stored['metadata']['name']}?fieldValidation=Strict"
    return client.replace(path, body)


def _verdict(client: Api, case: AdmissionCase, number: int) -> str | None:
    manifest = copy.deepcopy(dict(case.manifest))
    manifest["metadata"]["name"] = f"case-{number}"
    update = copy.deepcopy(case.update)
    try:
        stored = _create(client, manifest)
        if update is not None:
            _update(client, stored, {**update, "metadata": {**update["metadata"], "name": f"case-{number}"}})
    except ApiError as exc:
        if exc.status not in (400, 422):
            raise
        return exc.message
    return None


def _wrong(client: Api, *, later: bool) -> list[str]:
    """Return what the server judges otherwise than the tables, of those behind the other gates or not."""
    found = []
    for number, case in enumerate(admission_cases()):
        if later == (case.gates <= GATES):
            continue
        refusal = _verdict(client, case, number)
        if (refusal is None) != (case.reject is None):
            found.append(f"{case.id}: expected {case.reject or 'acceptance'}, got {refusal}")
    return found


def test_the_api_server_gives_the_verdict_of_the_tables(api: Api) -> None:
    assert _wrong(api, later=False) == []


def test_the_founding_manifests_are_accepted_and_come_back_as_written(api: Api) -> None:
    for manifest in yaml.safe_load_all(SEEDS.read_text()):
        stored = _create(api, manifest)

        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        written = kind.from_wire(stored).to_wire()
        stored["metadata"].pop("managedFields", None)
        assert written == stored


def test_a_smallest_pool_is_filled_with_the_defaults_of_v1_9(api: Api) -> None:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "smallest"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": ref}}},
    }

    _create(api, body)

    stored = api.get(f"{_collection(NodePool.INFO)}/smallest")
    assert stored["spec"]["template"]["spec"]["expireAfter"] == "720h"
    assert stored["spec"]["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    assert stored["status"] == {"nodes": 0}


def test_pools_scale_through_the_scale_subresource(api: Api) -> None:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "static"},
        "spec": {"replicas": 2, "template": {"spec": {"requirements": [], "nodeClassRef": ref}}},
    }
    _create(api, body)

    api.merge(f"{_collection(NodePool.INFO)}/static/scale", {"spec": {"replicas": 5}})

    assert api.get(f"{_collection(NodePool.INFO)}/static")["spec"]["replicas"] == 5


def test_buffers_are_found_by_their_short_name(api: Api) -> None:
    resources = api.get(f"/apis/{CapacityBuffer.INFO.api_version}")["resources"]

    assert [r["shortNames"] for r in resources if r["name"] == "capacitybuffers"] == [["cb"]]


def test_the_verdict_on_what_came_later_where_its_gate_is_open(api: Api) -> None:
    cases = [case for case in admission_cases() if not case.gates <= GATES]
    definition = next(each for each in crds(ALL_GATES) if each["spec"]["names"]["kind"] == "EC2NodeClass")
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    version = api.get(path)["metadata"]["resourceVersion"]

    api.replace(path, {**definition, "metadata": {**definition["metadata"], "resourceVersion": version}})
    accepted = next(case for case in cases if case.reject is None)
    for number in range(1000, 1100):
        if _verdict(api, accepted, number) is None:
            break
        time.sleep(0.1)

    assert {case.manifest["kind"] for case in cases} == {"EC2NodeClass"}
    assert _wrong(api, later=True) == []
