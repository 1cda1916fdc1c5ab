from __future__ import annotations

import tomllib
from collections.abc import Callable
from email import message_from_string
from typing import Any

import attrs
import pytest
import yaml

from controller.cloud.aws.userdata import Bootstrap, KubeletArgs, dropped_settings, render
from controller.scheduling import Taint
from framework.api.ec2nodeclass import AmiFamily

KUBELET = KubeletArgs(
    max_pods=58,
    cluster_dns=("10.100.0.10",),
    pods_per_core=4,
    system_reserved={"memory": "100Mi", "cpu": "100m"},
    kube_reserved={"memory": "200Mi"},
    eviction_hard={"memory.available": "5%", "nodefs.available": "10%"},
    eviction_soft={"memory.available": "10%"},
    eviction_soft_grace_period={"memory.available": "1m"},
    eviction_max_pod_grace_period=60,
    image_gc_high_threshold_percent=85,
    image_gc_low_threshold_percent=80,
    cpu_cfs_quota=True,
)
FULL = Bootstrap(
    cluster_name="demo",
    endpoint="https://example.eks.amazonaws.com",
    ca_bundle="Q0E=",
    service_cidr="10.100.0.0/16",
    labels={
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/do-not-sync-taints": "true",
        "karpenter.sh/nodepool": "web",
        "team": "blue",
    },
    taints=(
        Taint("team", "blue", "NoSchedule"),
        Taint("karpenter.sh/unregistered", "", "NoExecute"),
    ),
    kubelet=KUBELET,
    raid0=True,
    image_version=(1, 46, 0),
)
BARE = Bootstrap(
    cluster_name="demo",
    endpoint="https://example.eks.amazonaws.com",
    ca_bundle="Q0E=",
    service_cidr="10.100.0.0/16",
    kubelet=KubeletArgs(max_pods=29),
)


@pytest.mark.parametrize("family", [family for family in AmiFamily if family is not AmiFamily.CUSTOM])
@pytest.mark.parametrize("given", ["full", "bare"])
def test_user_data_is_that_of_the_golden_file(
    family: AmiFamily, given: str, golden: Callable[[str, str], None]
) -> None:
    found = render(family, FULL if given == "full" else BARE)

    golden(f"userdata-{family.value.lower()}-{given}.txt", found)


def parts(text: str) -> list[tuple[str, str]]:
    message: Any = message_from_string(text)
    return [(part.get_content_type(), part.get_payload()) for part in message.get_payload()]


def test_own_nodeconfig_comes_before_the_generated_one() -> None:
    own = yaml.safe_dump(
        {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {"kubelet": {"config": {"maxPods": 250, "containerLogMaxSize": "50Mi"}}},
        }
    )

    found = parts(render(AmiFamily.AL2023, attrs.evolve(FULL, custom=own)))

    assert [kind for kind, _ in found] == ["application/node.eks.aws"] * 2
    configs = [yaml.safe_load(text)["spec"]["kubelet"]["config"] for _, text in found]
    assert {**configs[0], **configs[1]}["maxPods"] == 58
    assert {**configs[0], **configs[1]}["containerLogMaxSize"] == "50Mi"


def test_a_plain_script_becomes_a_shell_part_before_the_generated_one() -> None:
    found = parts(render(AmiFamily.AL2023, attrs.evolve(FULL, custom="#!/bin/bash\necho hello\n")))

    assert [kind for kind, _ in found] == ["text/x-shellscript", "application/node.eks.aws"]
    assert "echo hello" in found[0][1]


def test_own_archives_keep_their_parts() -> None:
    own = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="BOUNDARY"\n\n'
        '--BOUNDARY\nContent-Type: text/x-shellscript; charset="us-ascii"\n\n#!/bin/sh\r\necho one\n\n'
        "--BOUNDARY\nContent-Type: text/cloud-config\n\n#cloud-config\n\n--BOUNDARY--\n"
    )

    text = render(AmiFamily.AL2, attrs.evolve(BARE, custom=own))

    assert [kind for kind, _ in parts(text)] == [
        "text/x-shellscript",
        "text/cloud-config",
        "text/x-shellscript",
    ]
    assert "\r" not in text


def test_ipv6_dns_switches_the_al2_script_to_ipv6() -> None:
    kubelet = attrs.evolve(KUBELET, cluster_dns=("fd30:1c53:5f8a::a",))

    text = render(AmiFamily.AL2, attrs.evolve(FULL, kubelet=kubelet))

    assert "--ip-family ipv6 --dns-cluster-ip 'fd30:1c53:5f8a::a'" in text


def test_bottlerocket_keeps_the_users_settings_and_overwrites_ours() -> None:
    own = """
[settings.ntp]
time-servers = ["169.254.169.123"]

[settings.kubernetes]
kube-api-qps = 30
cluster-name = "other"
no-such-setting = 1

[settings.kubernetes.node-labels]
team = "red"
mine = "yes"

[settings.kubernetes.node-taints]
mine = ["x:NoSchedule"]
"""

    found = tomllib.loads(render(AmiFamily.BOTTLEROCKET, attrs.evolve(FULL, custom=own)))

    kubernetes = found["settings"]["kubernetes"]
    assert found["settings"]["ntp"] == {"time-servers": ["169.254.169.123"]}
    assert (kubernetes["kube-api-qps"], kubernetes["cluster-name"]) == (30, "demo")
    assert kubernetes["node-labels"]["team"] == "blue"
    assert kubernetes["node-labels"]["mine"] == "yes"
    assert kubernetes["node-taints"] == {
        "karpenter.sh/unregistered": [":NoExecute"],
        "team": ["blue:NoSchedule"],
    }
    assert "no-such-setting" not in kubernetes
    assert dropped_settings(own) == ("no-such-setting",)


@pytest.mark.parametrize(
    ("version", "with_dirs"), [((1, 46, 0), False), ((1, 45, 9), True), (None, True), ((10**9,), False)]
)
def test_bottlerocket_names_the_directories_only_for_images_that_need_it(
    version: tuple[int, ...] | None, with_dirs: bool
) -> None:
    found = tomllib.loads(render(AmiFamily.BOTTLEROCKET, attrs.evolve(FULL, image_version=version)))

    command = found["settings"]["bootstrap-commands"]["000-mount-instance-storage"]
    assert ("--dirs" in command["commands"][1]) is with_dirs
    assert (command["mode"], command["essential"]) == ("always", True)


def test_toml_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match="userData is not TOML"):
        render(AmiFamily.BOTTLEROCKET, attrs.evolve(FULL, custom="not toml"))


def test_windows_runs_the_users_lines_first() -> None:
    own = "<powershell>\nWrite-Host hello\n</powershell>"

    text = render(AmiFamily.WINDOWS2022, attrs.evolve(FULL, custom=own))

    assert text.index("Write-Host hello") < text.index("Start-EKSBootstrap.ps1")
    assert (text.count("<powershell>"), text.count("</powershell>")) == (1, 1)


def test_custom_images_get_the_users_text_as_it_is() -> None:
    own = "anything\r\nat all"

    assert render(AmiFamily.CUSTOM, attrs.evolve(FULL, custom=own)) == own
    assert render(AmiFamily.CUSTOM, FULL) == ""
