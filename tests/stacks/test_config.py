from __future__ import annotations

import pytest

from framework.components import NatMode
from stacks.programs.config import InvalidConfig, StackConfig


def test_nothing_configured_is_the_founding_cluster() -> None:
    config = StackConfig.read({})

    assert (config.cluster_name, config.kubernetes_version, config.nat_gateways) == (
        "my-cluster",
        "1.34",
        NatMode.SINGLE,
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("natGateways", "two", "charpente:natGateways is 'two'; allowed: single, per-zone, none"),
        ("kubernetesVersion", "1.40", "charpente:kubernetesVersion is '1.40'; allowed: 1.26 to 1.35"),
        ("firstCapacitySize", "1", "charpente:firstCapacitySize is '1'; allowed: 2 to 20"),
        ("replicas", "many", "charpente:replicas is 'many'; allowed: 1 to 5"),
        ("zones", "eu-west-2a", "charpente:zones is 'eu-west-2a'; allowed: a list of zone names"),
        ("clusterName", "a b", "charpente:clusterName is 'a b'"),
        ("vpcCidr", "10.0.0.5/16", "charpente:vpcCidr is '10.0.0.5/16'; allowed: an IPv4 network"),
        ("drainTimeout", "soon", "charpente:drainTimeout is 'soon'; allowed: a duration such as 10m"),
        ("firstCapacity", "ec2", "charpente:firstCapacity is 'ec2'; allowed: node-group, fargate"),
        ("skipAwait", "yes", "charpente:skipAwait is 'yes'; allowed: true or false"),
    ],
)
def test_a_wrong_value_names_key_value_and_what_is_allowed(key: str, value: str, text: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        StackConfig.read({key: value})

    assert str(caught.value).startswith(text)


def test_fargate_has_no_pod_identity() -> None:
    with pytest.raises(InvalidConfig, match="identity is 'pod-identity'; allowed: irsa"):
        StackConfig.read({"firstCapacity": "fargate"})

    assert StackConfig.read({"firstCapacity": "fargate", "identity": "irsa"}).first_capacity == "fargate"


def test_a_misspelt_key_is_not_ignored() -> None:
    with pytest.raises(InvalidConfig, match="did you mean clusterName"):
        StackConfig.read({"clustername": "demo"})


def test_a_misspelt_setting_names_the_settings() -> None:
    config = StackConfig.read({"settings": '{"logLevl": "debug"}'})

    with pytest.raises(InvalidConfig, match=r"settings\.logLevl is 'debug'; allowed: .*logLevel"):
        config.controller_settings()


def test_settings_reach_the_controller() -> None:
    config = StackConfig.read({"settings": '{"logLevel": "debug", "reservedEnis": 1}'})

    assert config.controller_settings().environment()["RESERVED_ENIS"] == "1"
