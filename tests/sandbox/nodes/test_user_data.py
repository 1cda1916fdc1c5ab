"""User data is read as the bootstrap programs of the images read it."""

from __future__ import annotations

import textwrap

import pytest

from sandbox.nodes.bootstrap import BootstrapError, KubeletSettings, Taint
from sandbox.nodes.user_data import read


def mime(*parts: tuple[str, str]) -> str:
    body = "".join(
        f"--//\nContent-Type: {kind}\n\n{textwrap.dedent(text).strip()}\n\n" for kind, text in parts
    )
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n{body}--//--\n'


NODE_CONFIG = """
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
    apiServerEndpoint: https://127.0.0.1:6443
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
  instance:
    localStorage:
      strategy: RAID0
  kubelet:
    config:
      maxPods: 58
      kubeReserved: {cpu: 200m}
      registerWithTaints:
      - {key: karpenter.sh/unregistered, effect: NoExecute}
      - {key: dedicated, value: gpu, effect: NoSchedule}
    flags:
    - --node-labels="karpenter.sh/nodepool=default,team=a"
"""
AL2_SCRIPT = """
#!/bin/bash -xe
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://127.0.0.1:6443' --b64-cluster-ca 'Y2E=' \\
--use-max-pods false --local-disks raid0 \\
--kubelet-extra-args '--node-labels="team=a" --register-with-taints="a=b:NoSchedule,c:NoExecute" \\
--max-pods=110'
"""
BOTTLEROCKET = """
[settings.kubernetes]
cluster-name = "demo"
api-server = "https://127.0.0.1:6443"
cluster-certificate = "Y2E="
max-pods = 29
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"
[settings.kubernetes.node-taints]
dedicated = ["gpu:NoSchedule", "gpu:NoExecute"]
[settings.kubernetes.eviction-hard]
"memory.available" = "5%"
"""


def test_nodeadm_reads_labels_taints_and_settings() -> None:
    bootstrap = read(mime(("application/node.eks.aws", NODE_CONFIG)))

    assert bootstrap.labels == {"karpenter.sh/nodepool": "default", "team": "a"}
    assert bootstrap.taints == (
        Taint("karpenter.sh/unregistered", "", "NoExecute"),
        Taint("dedicated", "gpu", "NoSchedule"),
    )
    assert bootstrap.kubelet == KubeletSettings(max_pods=58, kube_reserved={"cpu": "200m"})
    assert (bootstrap.endpoint, bootstrap.striped_disks) == ("https://127.0.0.1:6443", True)


def test_the_last_node_config_wins_and_flags_add_up() -> None:
    user = """
        apiVersion: node.eks.aws/v1alpha1
        kind: NodeConfig
        spec:
          kubelet:
            config: {maxPods: 10, podsPerCore: 4}
            flags: [--node-labels=mine=yes]
    """
    bootstrap = read(mime(("application/node.eks.aws", user), ("application/node.eks.aws", NODE_CONFIG)))

    assert (bootstrap.kubelet.max_pods, bootstrap.kubelet.pods_per_core) == (58, 4)
    assert bootstrap.labels == {"mine": "yes", "karpenter.sh/nodepool": "default", "team": "a"}


def test_a_shell_part_beside_the_node_config_changes_nothing() -> None:
    alone = read(mime(("application/node.eks.aws", NODE_CONFIG)))

    assert read(mime(("text/x-shellscript", "echo hi"), ("application/node.eks.aws", NODE_CONFIG))) == alone


def test_the_bootstrap_script_of_al2_is_read() -> None:
    bootstrap = read(mime(("text/x-shellscript", AL2_SCRIPT)))

    assert bootstrap.cluster_name == "demo"
    assert bootstrap.labels == {"team": "a"}
    assert bootstrap.taints == (Taint("a", "b", "NoSchedule"), Taint("c", "", "NoExecute"))
    assert (bootstrap.kubelet.max_pods, bootstrap.striped_disks) == (110, True)


def test_bottlerocket_settings_are_read() -> None:
    bootstrap = read(BOTTLEROCKET)

    assert bootstrap.labels == {"karpenter.sh/nodepool": "default"}
    assert bootstrap.taints == (
        Taint("dedicated", "gpu", "NoSchedule"),
        Taint("dedicated", "gpu", "NoExecute"),
    )
    assert bootstrap.kubelet == KubeletSettings(
        max_pods=29, eviction_hard={"memory.available": "5%"}, reserves_by_max_pods=True
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "there is no user data"),
        ("#!/bin/sh\necho hello", "starts no bootstrap program"),
        (NODE_CONFIG.replace("    cidr: 10.100.0.0/16\n", ""), r"spec\.cluster\.cidr is missing"),
        (NODE_CONFIG.replace("v1alpha1", "v1"), "starts no bootstrap program"),
        (
            mime(
                ("application/node.eks.aws", "spec: ["),
            ),
            "is not YAML",
        ),
        (
            mime(("text/x-shellscript", AL2_SCRIPT.replace("a=b:NoSchedule", "a=b:Never"))),
            "is not key=value:Effect",
        ),
        (mime(("text/x-shellscript", "/etc/eks/bootstrap.sh demo")), "--apiserver-endpoint is missing"),
        (BOTTLEROCKET.replace('cluster-name = "demo"', ""), "cluster-name is missing"),
    ],
)
def test_what_would_keep_the_instance_from_joining_is_said(content: str, reason: str) -> None:
    with pytest.raises(BootstrapError, match=reason):
        read(content)
