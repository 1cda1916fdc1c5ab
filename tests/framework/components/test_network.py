from __future__ import annotations

from collections.abc import Callable

import pytest

from framework.components import NatMode, Network, NetworkArgs
from framework.components.addresses import UnplannableNetwork, plan_zones
from tests.framework.components.conftest import Declare

ZONES = ("eu-west-2a", "eu-west-2b", "eu-west-2c")


def a_network(**changes: object) -> Callable[[], Network]:
    given = {"cluster_name": "demo", "region": "eu-west-2", "zones": ZONES, **changes}
    return lambda: Network("network", NetworkArgs(**given))  # type: ignore[arg-type]


def test_a_zone_keeps_its_addresses_when_another_is_added() -> None:
    few, more = plan_zones("10.0.0.0/16", ZONES[1:]), plan_zones("10.0.0.0/16", ZONES)

    assert set(few) < set(more)


def test_no_two_subnets_overlap() -> None:
    import ipaddress
    from itertools import combinations

    plans = plan_zones("10.0.0.0/16", [f"us-east-1{letter}" for letter in "abcdef"])

    networks = [ipaddress.ip_network(c) for p in plans for c in (p.private_cidr, p.public_cidr)]
    assert not any(a.overlaps(b) for a, b in combinations(networks, 2))


@pytest.mark.parametrize(
    ("cidr", "zones", "problem"),
    [
        ("10.0.0.0/28", ZONES, "of the wrong size"),
        ("8.0.0.0/16", ZONES, "not a private network"),
        ("10.0.0.1/16", ZONES, "host bits"),
        ("10.0.0.0/16", ZONES[:1], "EKS needs two zones"),
        ("10.0.0.0/16", ("eu-west-2a", "eu-west-2a"), "EKS needs two zones"),
        ("10.0.0.0/16", ("eu-west-2a", "us-west-2-lax-1a"), None),
        ("10.0.0.0/16", ("eu-west-2a", "eu-west-2g"), "not a zone of a region"),
    ],
)
def test_a_network_that_cannot_be_planned_says_why(
    cidr: str, zones: tuple[str, ...], problem: str | None
) -> None:
    if problem is None:
        assert len(plan_zones(cidr, zones)) == 2
        return
    with pytest.raises(UnplannableNetwork, match=problem):
        plan_zones(cidr, zones)


def test_only_private_subnets_are_found_by_node_classes(declare: Declare) -> None:
    recorder = declare(a_network())

    found = {r.name: r.inputs["tags"].get("karpenter.sh/discovery") for r in recorder.of("Subnet")}
    assert {name for name, value in found.items() if value == "demo"} == {
        f"network-private-{zone}" for zone in ZONES
    }


@pytest.mark.parametrize(
    ("nat", "gateways", "routes_out"),
    [(NatMode.SINGLE, 1, 3), (NatMode.PER_ZONE, 3, 3), (NatMode.NONE, 0, 0)],
)
def test_private_subnets_reach_out_as_configured(
    declare: Declare, nat: NatMode, gateways: int, routes_out: int
) -> None:
    recorder = declare(a_network(nat=nat))

    routes = [r for r in recorder.of("Route") if "private-out" in r.name]
    assert (len(recorder.of("NatGateway")), len(routes)) == (gateways, routes_out)


def test_no_subnet_gives_instances_public_addresses(declare: Declare) -> None:
    recorder = declare(a_network())

    assert {r.inputs["mapPublicIpOnLaunch"] for r in recorder.of("Subnet")} == {False}


def test_a_network_without_a_way_out_reaches_aws_by_endpoints(declare: Declare) -> None:
    recorder = declare(a_network(nat=NatMode.NONE))

    inside = [r.inputs for r in recorder.of("VpcEndpoint") if r.inputs["vpcEndpointType"] == "Interface"]
    services = {each["serviceName"].removeprefix("com.amazonaws.eu-west-2.") for each in inside}
    assert services == {"ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts"}
    assert {each["privateDnsEnabled"] for each in inside} == {True}
    (rule,) = recorder.one("SecurityGroup").inputs["ingress"]
    assert (rule["cidrBlocks"], rule["fromPort"]) == (["10.0.0.0/16"], 443)


def test_a_network_with_a_way_out_pays_for_no_interface_endpoints(declare: Declare) -> None:
    assert [r.inputs["vpcEndpointType"] for r in declare(a_network()).of("VpcEndpoint")] == ["Gateway"]
