"""A whole sandbox, for real: its control plane, its nodes, its pods, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from framework import eks_token
from sandbox.aws.control import Control
from sandbox.aws.world import NodeBoot
from sandbox.errors import SandboxError
from sandbox.kubernetes import Access, Api, ApiError, Options
from sandbox.machine import Sandbox, SandboxOptions
from sandbox.processes import ProcessTable, began
from tests.sandbox.nodes.account import Account

pytestmark = pytest.mark.sandbox

PODS = "/api/v1/namespaces/default/pods"
T = TypeVar("T")
TOLERATES_ALL = [{"operator": "Exists"}]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    options = SandboxOptions(kubernetes=Options(node_grace_s=10))
    with Sandbox(tmp_path_factory.mktemp("sandbox"), options) as running:
        Control(running.aws_endpoint).set_node_boot(NodeBoot(boot_seconds=1))
        yield running


@pytest.fixture(scope="module")
def account(sandbox: Sandbox) -> Account:
    return Account(sandbox)


def eventually(look: Callable[[], T | None], what: str, seconds: float = 60) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s")


def node_of(api: Api, instance_id: str) -> dict[str, Any] | None:
    nodes, _ = api.list("/api/v1/nodes")
    return next((n for n in nodes if n["spec"].get("providerID", "").endswith(instance_id)), None)


def is_ready(thing: dict[str, Any] | None) -> bool:
    conditions = (thing or {}).get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def joined(sandbox: Sandbox, instance_id: str) -> dict[str, Any]:
    return eventually(
        lambda: node if is_ready(node := node_of(sandbox.api, instance_id)) else None, f"{instance_id} joins"
    )


def a_container(*command: str) -> dict[str, Any]:
    return {"name": "c", "image": "pause", **({"command": list(command)} if command else {})}


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    base = {"containers": [a_container()], "tolerations": TOLERATES_ALL}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**base, **spec}}


def token_of(sandbox: Sandbox, namespace: str, account: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(sandbox.api.create(path, request)["status"]["token"])


def bearer(sandbox: Sandbox, token: str) -> Api:
    access = sandbox.api.access
    return Api(Access(server=access.server, authority=access.authority, token=token))


def test_service_accounts_have_tokens_and_no_rights_of_their_own(sandbox: Sandbox) -> None:
    api = bearer(sandbox, token_of(sandbox, "default", "default"))

    with pytest.raises(ApiError) as caught:
        api.get("/api/v1/nodes")

    assert caught.value.status == 403


def test_an_instance_becomes_a_node_that_runs_pods(sandbox: Sandbox, account: Account) -> None:
    (instance,) = account.run(labels="team=a")
    node = joined(sandbox, instance)
    api, name = sandbox.api, node["metadata"]["name"]

    api.create(PODS, a_pod("one", nodeSelector={"team": "a"}))
    template = {"metadata": {"labels": {"app": "d"}}, "spec": a_pod("d")["spec"]}
    api.create(
        "/apis/apps/v1/namespaces/default/daemonsets",
        {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
        },
    )
    job = {"spec": {**a_pod("j")["spec"], "restartPolicy": "Never"}}
    api.create(
        "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": {"template": job}}
    )

    assert node["metadata"]["labels"]["team"] == "a"
    assert {"key": "dedicated", "value": "a", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["status"]["capacity"]["pods"] == "58"
    pod = eventually(lambda: p if is_ready(p := api.get(f"{PODS}/one")) else None, "the pod runs")
    assert pod["spec"]["nodeName"] == name
    daemons = "/apis/apps/v1/namespaces/default/daemonsets/d"
    eventually(lambda: api.get(daemons)["status"].get("numberReady", 0) >= 1, "the daemon runs")
    eventually(
        lambda: api.get("/apis/batch/v1/namespaces/default/jobs/j")["status"].get("succeeded") == 1,
        "the job ends",
    )
    api.delete(f"{PODS}/one")
    eventually(lambda: api.find(f"{PODS}/one") is None, "the pod stops")


def test_a_node_may_only_speak_for_itself(sandbox: Sandbox, account: Account) -> None:
    (instance,) = account.run(labels="team=b")
    name = joined(sandbox, instance)["metadata"]["name"]

    label = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}

    with pytest.raises(ApiError, match="node-restriction") as own:
        sandbox.api.as_node(name).merge(f"/api/v1/nodes/{name}", label)
    with pytest.raises(ApiError) as other:
        sandbox.api.as_node("somebody-else").merge(f"/api/v1/nodes/{name}/status", {"status": {"phase": "x"}})

    assert (own.value.status, other.value.status) == (403, 403)


def test_an_instance_whose_role_has_no_access_entry_stays_outside(sandbox: Sandbox, account: Account) -> None:
    account.node_role("stranger")

    (instance,) = account.run(profile="stranger")

    log = sandbox.processes.log_path("nodes")
    line = f"{instance}: not joined yet: Unauthorized"
    eventually(lambda: line in log.read_text(), "the refusal is logged")
    assert node_of(sandbox.api, instance) is None


def test_a_label_that_kubelets_may_not_set_keeps_the_node_out(sandbox: Sandbox, account: Account) -> None:
    (instance,) = account.run(labels="node-restriction.kubernetes.io/team=a")

    log = sandbox.processes.log_path("nodes")
    eventually(lambda: f"{instance}: not joined yet" in log.read_text(), "the refusal is logged")
    assert node_of(sandbox.api, instance) is None


def test_the_node_of_a_terminated_instance_falls_silent_and_goes(sandbox: Sandbox, account: Account) -> None:
    (instance,) = account.run()
    joined(sandbox, instance)

    account.ec2.terminate_instances(InstanceIds=[instance])

    silent = eventually(
        lambda: node if not is_ready(node := node_of(sandbox.api, instance)) else None,
        "the node is not ready",
    )
    assert silent["metadata"]["name"]
    eventually(lambda: node_of(sandbox.api, instance) is None, "the node goes")


def test_an_eks_token_is_worth_what_the_access_entry_says(
    sandbox: Sandbox, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    api = bearer(sandbox, eks_token.token(eks_token.presigned_url("demo", "eu-west-2")))

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)["status"]["userInfo"]

    assert user["username"] == "arn:aws:iam::123456789012:user/moto"
    assert api.list("/api/v1/nodes")  # the creator of the cluster is its administrator
    account.eks.delete_access_entry(clusterName="demo", principalArn=user["username"])
    with pytest.raises(ApiError) as caught:
        bearer(sandbox, eks_token.token(eks_token.presigned_url("demo", "eu-west-2")) + "A").get(
            "/api/v1/nodes"
        )
    assert caught.value.status == 401


def test_a_pod_of_this_project_is_a_process_that_is_started_again(sandbox: Sandbox, account: Account) -> None:
    (instance,) = account.run(labels="team=c")
    joined(sandbox, instance)
    api = sandbox.api
    pod = a_pod("host", containers=[a_container("charpente", "--help")], nodeSelector={"team": "c"})

    api.create(PODS, pod)

    def container() -> dict[str, Any]:
        statuses = api.get(f"{PODS}/host")["status"].get("containerStatuses")
        return dict(statuses[0]) if statuses else {}

    ended = eventually(lambda: c if (c := container()).get("restartCount", 0) >= 1 else None, "it ends once")
    assert ended["lastState"]["terminated"]["exitCode"] == 0
    assert "Usage" in sandbox.processes.log_path("pod-host").read_text()
    api.delete(f"{PODS}/host")
    eventually(lambda: api.find(f"{PODS}/host") is None, "the pod is gone")


def test_a_second_sandbox_in_the_same_folder_is_refused_in_one_line(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="runs already") as caught:
        Sandbox(sandbox.directory).start()

    assert "\n" not in str(caught.value)
    assert sandbox.api.is_ready()


@pytest.mark.parametrize("part", ["api server", "aws"])
def test_a_taken_port_is_named_and_nothing_starts(part: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        if part == "aws":
            options = SandboxOptions(aws_port=port)
        else:
            options = SandboxOptions(kubernetes=Options(port=port))
        sandbox = Sandbox(tmp_path, options)

        with pytest.raises(SandboxError) as refused:
            sandbox.start()

    assert str(refused.value).startswith(f"port {port}: another program listens on it; choose another")
    assert not sandbox.processes.all()


def test_a_sandbox_ends_with_the_process_that_started_it_however_that_dies(tmp_path: Path) -> None:
    program = """
        import sys, time
        from pathlib import Path
        from sandbox.machine import Sandbox
        with Sandbox(Path(sys.argv[1])):
            print("up", flush=True)
            time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    running = ProcessTable(tmp_path).all()

    parent.kill()
    parent.wait()
    parent.stdout.close()

    assert len(running) == 7
    eventually(lambda: all(began(r.pid) != r.began for r in running), "every process is gone", 30)
    eventually(lambda: not (tmp_path / "kubernetes").exists(), "its files are gone", 30)


def test_down_cleans_up_after_a_crash(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.start_kubernetes()
    crashed = sandbox.processes.get("kube-apiserver")
    assert crashed is not None
    os.kill(crashed.pid, signal.SIGKILL)

    stopped = Sandbox(tmp_path).stop()

    assert set(stopped) >= {"etcd"}
    assert ProcessTable(tmp_path).all() == ()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["logs"]
