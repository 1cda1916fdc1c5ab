"""Which images a node class means, and which type boots which (spec aws/docs-catalogue, B)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controller.cloud.aws.gateway.records import ImageRecord
from controller.cloud.aws.images import image_for
from controller.kube import kinds
from framework.api import labels
from framework.api.ec2nodeclass import EC2NodeClass
from tests.controller.cloud.aws.builders import a_claim, a_pool
from tests.controller.cloud.aws.scene import Scene

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
DAY = timedelta(days=1)


def add_image(
    scene: Scene,
    identifier: str,
    name: str = "mine",
    *,
    architecture: str = "x86_64",
    age: int = 1,
    deprecated: bool = False,
    **facts: str,
) -> None:
    """Register an image, so many days old; facts are owner and tags."""
    now = scene.clock.now()
    scene.account.images[identifier] = ImageRecord(
        id=identifier,
        name=name,
        architecture=architecture,
        created=now - age * DAY,
        deprecated_at=now - DAY if deprecated else None,
    )
    tags = {f"tag:{key}": value for key, value in facts.items() if key != "owner"}
    scene.account.image_facts[identifier] = {"owner": facts.get("owner", "self"), **tags}


def ids(node_class: EC2NodeClass) -> list[str]:
    return [each.id for each in node_class.status.amis]


@pytest.mark.parametrize(
    ("alias", "version", "count", "parameters"),
    [
        ("al2023@latest", "1.34", 5, ["1.34/amazon-linux-2023/arm64/nvidia/recommended/image_id"]),
        ("al2023@v20260201", "1.34", 5, ["amazon-eks-node-al2023-x86_64-neuron-1.34-v20260201/image_id"]),
        ("al2@latest", "1.32", 4, ["1.32/amazon-linux-2-gpu/recommended/image_id"]),
        ("bottlerocket@latest", "1.34", 5, ["aws-k8s-1.34-nvidia/arm64/latest/image_id"]),
        ("bottlerocket@v1.39.0", "1.34", 5, ["aws-k8s-1.34/x86_64/1.39.0/image_id"]),
        ("windows2019@latest", "1.34", 1, ["Windows_Server-2019-English-Core-EKS_Optimized-1.34/image_id"]),
        ("windows2022@latest", "1.34", 1, ["Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id"]),
        ("windows2025@latest", "1.35", 1, ["Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id"]),
    ],
)
async def test_an_alias_stands_for_the_parameters_of_its_family(
    alias: str, version: str, count: int, parameters: list[str]
) -> None:
    scene = Scene()
    scene.version = version
    found = await scene.resolve(amiSelectorTerms=[{"alias": alias}])

    asked = scene.account.asked("GetParameter")
    assert len(found.status.amis) == count
    assert all(any(each.endswith(end) for each in asked) for end in parameters), asked


async def test_al2_lists_its_gpu_image_twice() -> None:
    scene = Scene()
    scene.version = "1.32"
    found = await scene.resolve(amiSelectorTerms=[{"alias": "al2@latest"}])

    times = sorted(ids(found).count(each) for each in set(ids(found)))
    assert times == [1, 1, 2]


async def test_windows_images_are_for_their_build_and_for_no_arm_type() -> None:
    scene = Scene()
    found = await scene.resolve(amiSelectorTerms=[{"alias": "windows2022@latest"}])

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, (labels.OS, ["windows"])))
    assert [
        spec.values for spec in found.status.amis[0].requirements if spec.key == labels.WINDOWS_BUILD
    ] == [("10.0.20348",)]
    assert launch.instance.labels[labels.WINDOWS_BUILD] == "10.0.20348"
    assert launch.instance.capacity["pods"] == 110
    assert launch.types & {"m5.large", "t3.medium"}
    assert not launch.types & {"a1.medium", "m6g.large", "t4g.medium"}
    assert launch.user_data.startswith("<powershell>")
    (device,) = launch.template["BlockDeviceMappings"]
    assert (device["DeviceName"], device["Ebs"]["VolumeSize"]) == ("/dev/sda1", 50)


async def test_accelerated_types_boot_their_own_image() -> None:
    scene = Scene()
    found = await scene.resolve()

    names = {}
    for kind in ("m5.large", "g4dn.xlarge", "inf2.xlarge", "m6g.large"):
        shape = scene.operator.parts.types.find(found, kind)
        assert shape is not None
        ami = image_for(found.status.amis, shape.requirements)
        assert ami is not None
        names[kind] = (ami.name or "").split("amazon-linux-2023-")[1].removesuffix("-recommended-image_id")
    assert names == {
        "m5.large": "x86_64-standard",
        "g4dn.xlarge": "x86_64-nvidia",
        "inf2.xlarge": "x86_64-neuron",
        "m6g.large": "arm64-standard",
    }


CUSTOM: dict[str, Any] = {"amiFamily": "AL2023"}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"id": "ami-third"}, ["ami-third"]),
        ({"name": "mine-*"}, ["ami-own"]),
        ({"name": "mine-*", "owner": "999999999999"}, ["ami-third"]),
        ({"name": "mine-?"}, ["ami-own"]),
        ({"tags": {"team": "blue"}}, ["ami-third"]),
        ({"tags": {"team": "*"}}, ["ami-own"]),
        ({"tags": {"team": "blue"}, "owner": "self"}, []),
        ({"ssmParameter": "/mine/image"}, ["ami-own"]),
        ({"ssmParameter": "/mine/no-image"}, []),
        ({"ssmParameter": "/mine/missing"}, []),
    ],
)
async def test_each_form_of_a_term_finds_its_images(term: dict[str, Any], expected: list[str]) -> None:
    scene = Scene()
    add_image(scene, "ami-own", "mine-1", age=1, team="red")
    add_image(scene, "ami-third", "mine-2", age=2, owner="999999999999", team="blue")
    scene.account.parameters = {"/mine/image": "ami-own", "/mine/no-image": "text"}

    found = await scene.resolve(**CUSTOM, amiSelectorTerms=[term])

    assert ids(found) == expected


async def test_of_own_images_the_newest_of_each_architecture_is_used() -> None:
    scene = Scene()
    add_image(scene, "ami-old", age=3)
    add_image(scene, "ami-new", age=1)
    add_image(scene, "ami-arm", age=9, architecture="arm64")
    terms = [{"id": each} for each in ("ami-old", "ami-new", "ami-arm")]

    found = await scene.resolve(amiFamily="AL2", amiSelectorTerms=terms, userData=_MIME)

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, (labels.INSTANCE_TYPE, ["m5.large"])))
    assert ids(found) == ["ami-new", "ami-arm"]
    assert launch.instance.image_id == "ami-new"
    assert launch.user_data.index("echo mine") < launch.user_data.index("/etc/eks/bootstrap.sh")


_MIME = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="X"

--X
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo mine
--X--
"""


async def test_a_deprecated_image_serves_until_a_better_one_matches() -> None:
    scene = Scene()
    add_image(scene, "ami-old", "mine-1", age=9, deprecated=True)
    before = ids(await scene.resolve(**CUSTOM, amiSelectorTerms=[{"name": "mine-*"}]))
    launched = (await scene.launch(a_claim("web-1", ON_DEMAND))).instance.image_id

    add_image(scene, "ami-older", "mine-2", age=20)
    await scene.clock.advance(61)
    await scene.reconcile("nodeclass", "default")

    after = scene.world.mirror.ec2nodeclass("default")
    assert after is not None
    assert (before, launched, ids(after)) == (["ami-old"], "ami-old", ["ami-older"])


async def test_a_custom_family_sends_its_user_data_as_it_is_and_no_devices() -> None:
    scene = Scene()
    add_image(scene, "ami-own")
    await scene.resolve(amiFamily="Custom", amiSelectorTerms=[{"id": "ami-own"}], userData="verbatim ${x}\n")

    launch = await scene.launch(a_claim("web-1", ON_DEMAND))

    assert launch.user_data == "verbatim ${x}\n"
    assert "BlockDeviceMappings" not in launch.template


async def test_a_custom_family_may_take_its_images_by_alias() -> None:
    scene = Scene()
    terms = [{"alias": "bottlerocket@latest"}]
    found = await scene.resolve(amiFamily="Custom", amiSelectorTerms=terms)

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, (labels.ARCH, ["arm64"])))

    assert len(found.status.amis) == 5
    assert "UserData" not in launch.template


async def test_ubuntu_works_as_al2_with_its_own_root_device() -> None:
    scene = Scene()
    add_image(scene, "ami-ubuntu")
    device = {"deviceName": "/dev/sda1", "rootVolume": True, "ebs": {"volumeSize": "80Gi"}}
    await scene.resolve(
        amiFamily="AL2", amiSelectorTerms=[{"id": "ami-ubuntu"}], blockDeviceMappings=[device]
    )

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, (labels.INSTANCE_TYPE, ["m5.large"])))

    (mapping,) = launch.template["BlockDeviceMappings"]
    assert (mapping["DeviceName"], mapping["Ebs"]["VolumeSize"]) == ("/dev/sda1", 80)
    assert launch.instance.capacity["ephemeral-storage"] == 80 * 2**30
    assert "/etc/eks/bootstrap.sh" in launch.user_data


async def test_a_full_windows_server_is_found_by_name_among_amazons_images() -> None:
    scene = Scene()
    name = "Windows_Server-2022-English-Full-EKS_Optimized-1.34-2026.01.13"
    add_image(scene, "ami-full", name, owner="amazon")
    add_image(scene, "ami-fake", name + "b", owner="999999999999", age=0)
    terms = [{"name": "Windows_Server-2022-English-Full-EKS_Optimized-1.34*"}]

    found = await scene.resolve(amiFamily="Windows2022", amiSelectorTerms=terms)

    assert ids(found) == ["ami-full"]
    assert [spec.key for spec in found.status.amis[0].requirements] == [labels.ARCH]


@pytest.mark.parametrize(
    ("spec", "drifted"),
    [
        ({"amiSelectorTerms": [{"alias": "al2023@v20260201"}]}, "AMIDrift"),
        ({"amiSelectorTerms": [{"alias": "al2023@latest"}]}, "AMIDrift"),
        ({**CUSTOM, "amiSelectorTerms": [{"id": "ami-own"}]}, None),
        ({**CUSTOM, "amiSelectorTerms": [{"name": "mine"}]}, None),
    ],
    ids=["pinned alias", "alias", "id", "name"],
)
async def test_a_new_control_plane_rolls_nodes_of_an_alias_only(
    spec: dict[str, Any], drifted: str | None
) -> None:
    scene = Scene()
    add_image(scene, "ami-own")
    await scene.resolve(**spec)
    made = (await scene.launch(a_claim("web-1", ON_DEMAND))).instance
    claim = {
        "metadata": {"name": "web-1", "labels": {**made.labels}, "annotations": dict(made.annotations)},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
        },
        "status": {"providerID": made.provider_id, "imageID": made.image_id},
    }
    scene.world.api.put(kinds.NODECLAIM, claim)

    scene.version = "1.35"
    await scene.clock.advance(301)
    await scene.reconcile("nodeclass", "default")
    (found,) = await scene.wait([scene.operator.provider.drift(scene.world.mirror.claims["web-1"], a_pool())])

    assert (found.reason if found is not None else None) == drifted
