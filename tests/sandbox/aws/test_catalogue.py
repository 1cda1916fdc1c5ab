"""What EC2 has on offer: types, offerings, images, parameters, prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from framework.data import on_demand_prices
from sandbox.aws.image_catalogue import catalogue
from sandbox.aws.market import offered_zones, spot_price

AL2023 = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"


def test_image_ids_are_the_same_in_every_run_and_differ_by_region() -> None:
    london, virginia = catalogue("eu-west-2"), catalogue("us-east-1")

    assert len({i.id for i in (*london, *virginia)}) == len(london) + len(virginia)
    assert london[0].id == "ami-1a1454499a2f7e0d9"
    assert [i.id for i in london] == [i.id for i in catalogue.__wrapped__("eu-west-2")]


def test_al2_images_end_with_kubernetes_1_32() -> None:
    versions = {
        p.split("/")[5] for i in catalogue("eu-west-2") for p in i.parameters if "amazon-linux-2/" in p
    }

    assert versions == {"1.31", "1.32"}


def test_spot_prices_differ_between_zones_but_stay_near_the_average() -> None:
    prices = [spot_price("eu-west-2", "m5.large", zone) for zone in offered_zones("eu-west-2", "m5.large")]

    assert len(set(prices)) == 3
    assert max(prices) / min(prices) < 1.11  # type: ignore[type-var, operator]


@pytest.mark.sandbox
def test_types_are_those_of_the_region_in_pages(aws: Any) -> None:
    pages = list(
        aws.client("ec2")
        .get_paginator("describe_instance_types")
        .paginate(PaginationConfig={"PageSize": 100})
    )

    assert sum(len(p["InstanceTypes"]) for p in pages) == 820
    assert max(len(p["InstanceTypes"]) for p in pages) == 100


@pytest.mark.sandbox
def test_types_pass_the_filters_of_the_controller(aws: Any) -> None:
    filters = [
        {"Name": "supported-virtualization-type", "Values": ["hvm"]},
        {"Name": "processor-info.supported-architecture", "Values": ["arm64"]},
        {"Name": "instance-type", "Values": ["m7g.*"]},
    ]

    found = aws.client("ec2").describe_instance_types(Filters=filters)["InstanceTypes"]

    assert {t["ProcessorInfo"]["SupportedArchitectures"][0] for t in found} == {"arm64"}
    assert all(t["InstanceType"].startswith("m7g.") for t in found)


@pytest.mark.sandbox
def test_a_type_shows_its_whole_shape(aws: Any) -> None:
    [found] = aws.client("ec2").describe_instance_types(InstanceTypes=["g5.xlarge"])["InstanceTypes"]

    assert found["VCpuInfo"]["DefaultVCpus"] == 4
    assert found["MemoryInfo"]["SizeInMiB"] == 16384
    assert found["GpuInfo"]["Gpus"][0]["Name"] == "A10G"
    assert found["NetworkInfo"]["NetworkCards"][0]["BaselineBandwidthInGbps"] > 0
    assert found["InstanceStorageInfo"]["TotalSizeInGB"] == 250


@pytest.mark.sandbox
def test_a_type_of_another_region_does_not_exist(aws: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidInstanceType.*\[m99\.large\]"):
        aws.client("ec2").describe_instance_types(InstanceTypes=["m5.large", "m99.large"])


@pytest.mark.sandbox
def test_offerings_by_zone(aws: Any) -> None:
    rows = aws.client("ec2").describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": ["inf2.xlarge", "g5.xlarge"]}],
    )["InstanceTypeOfferings"]

    assert [(r["InstanceType"], r["Location"]) for r in rows] == [
        ("g5.xlarge", "eu-west-2a"),
        ("g5.xlarge", "eu-west-2b"),
        ("inf2.xlarge", "eu-west-2a"),
    ]


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("parameter", "architecture"),
    [
        (f"{AL2023}/x86_64/standard/recommended/image_id", "x86_64"),
        (f"{AL2023}/arm64/standard/recommended/image_id", "arm64"),
        (f"{AL2023}/x86_64/nvidia/recommended/image_id", "x86_64"),
        (f"{AL2023}/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.34-v20260115/image_id", "x86_64"),
        ("/aws/service/bottlerocket/aws-k8s-1.33/arm64/latest/image_id", "arm64"),
        ("/aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/1.50.0/image_id", "x86_64"),
        (
            "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.31/image_id",
            "x86_64",
        ),
    ],
)
@pytest.mark.parametrize("region", ["eu-west-2", "us-east-1"])
def test_parameters_name_images_of_the_region(
    aws: Any, parameter: str, architecture: str, region: str
) -> None:
    image_id = aws.client("ssm", region).get_parameter(Name=parameter)["Parameter"]["Value"]

    [image] = aws.client("ec2", region).describe_images(Filters=[{"Name": "image-id", "Values": [image_id]}])[
        "Images"
    ]

    assert (image["Architecture"], image["ImageOwnerAlias"]) == (architecture, "amazon")


@pytest.mark.sandbox
def test_a_newer_image_can_be_published(aws: Any) -> None:
    name = f"{AL2023}/x86_64/standard/recommended/image_id"
    aws.control.set_parameter(name, "ami-newer")

    assert aws.client("ssm").get_parameter(Name=name)["Parameter"] | {"LastModifiedDate": None} == {
        "Name": name,
        "Type": "String",
        "Value": "ami-newer",
        "Version": 2,
        "LastModifiedDate": None,
        "ARN": f"arn:aws:ssm:eu-west-2:123456789012:parameter{name}",
        "DataType": "text",
    }


@pytest.mark.sandbox
def test_a_registered_image_keeps_its_architecture(aws: Any) -> None:
    ec2 = aws.client("ec2")
    image_id = ec2.register_image(Name="own", Architecture="arm64", RootDeviceName="/dev/xvda")["ImageId"]

    [image] = ec2.describe_images(Owners=["self"])["Images"]

    assert (image["ImageId"], image["Architecture"], image["RootDeviceName"]) == (
        image_id,
        "arm64",
        "/dev/xvda",
    )


@pytest.mark.sandbox
def test_a_deprecated_image_of_another_owner_is_shown_only_when_asked(aws: Any) -> None:
    ec2 = aws.client("ec2")
    image_id = aws.client("ssm").get_parameter(Name=f"{AL2023}/arm64/nvidia/recommended/image_id")[
        "Parameter"
    ]["Value"]
    ec2.enable_image_deprecation(ImageId=image_id, DeprecateAt=datetime(2026, 5, 1, tzinfo=UTC))
    query: dict[str, Any] = {"Filters": [{"Name": "image-id", "Values": [image_id]}]}

    assert ec2.describe_images(**query)["Images"] == []
    [shown] = ec2.describe_images(**query, IncludeDeprecated=True)["Images"]
    assert shown["DeprecationTime"] == "2026-05-01T00:00:00.000Z"


@pytest.mark.sandbox
def test_images_come_in_pages_by_name_pattern(aws: Any) -> None:
    pages = (
        aws.client("ec2")
        .get_paginator("describe_images")
        .paginate(
            Owners=["amazon"],
            Filters=[{"Name": "name", "Values": ["amazon-eks-node-al2023-*"]}],
            PaginationConfig={"PageSize": 40},
        )
    )

    assert [len(page["Images"]) for page in pages] == [40, 35]


@pytest.mark.sandbox
def test_prices_of_both_runs_of_the_controller(aws: Any) -> None:
    def priced(tenancy: str, family: str) -> dict[str, float]:
        fields = {
            "regionCode": "eu-west-2",
            "serviceCode": "AmazonEC2",
            "preInstalledSw": "NA",
            "operatingSystem": "Linux",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
            "tenancy": tenancy,
            "productFamily": family,
        }
        pages = (
            aws.client("pricing", "eu-central-1")
            .get_paginator("get_products")
            .paginate(
                ServiceCode="AmazonEC2",
                Filters=[{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in fields.items()],
            )
        )
        products = [json.loads(text) for page in pages for text in page["PriceList"]]
        return {p["product"]["attributes"]["instanceType"]: usd(p) for p in products}

    def usd(product: dict[str, Any]) -> float:
        [term] = product["terms"]["OnDemand"].values()
        [rate] = term["priceDimensions"].values()
        return float(rate["pricePerUnit"]["USD"])

    shared = priced("Shared", "Compute Instance")
    metal = priced("Dedicated", "Compute Instance (bare metal)")

    assert shared | metal == dict(on_demand_prices("eu-west-2"))
    assert len(metal) > 50
    assert shared["m5.large"] == 0.111


@pytest.mark.sandbox
def test_spot_history_has_every_offered_pool_once(aws: Any) -> None:
    pages = list(
        aws.client("ec2")
        .get_paginator("describe_spot_price_history")
        .paginate(
            ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"], PaginationConfig={"PageSize": 2000}
        )
    )
    rows = [(r["InstanceType"], r["AvailabilityZone"]) for page in pages for r in page["SpotPriceHistory"]]

    assert len(pages) == 2
    assert len(rows) == len(set(rows)) == 2525
