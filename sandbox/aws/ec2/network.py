"""Networks where moto is too lenient: pages, dependencies that forbid deletion, tags on what is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError

from sandbox.aws.ec2.actions import Ec2Actions
from sandbox.aws.ec2.launching import all_instances

__all__ = ["NetworkActions"]

PAGE = 1000
_STORES: Mapping[str, tuple[str, Callable[[Any, str], bool]]] = {
    "ami": ("InvalidAMIID.NotFound", lambda b, i: i in b.amis),
    "eni": ("InvalidNetworkInterfaceID.NotFound", lambda b, i: i in b.enis),
    "i": ("InvalidInstanceID.NotFound", lambda b, i: any(x.id == i for x in all_instances(b))),
    "igw": ("InvalidInternetGatewayID.NotFound", lambda b, i: i in b.internet_gateways),
    "lt": ("InvalidLaunchTemplateId.NotFound", lambda b, i: i in b.launch_templates),
    "nat": ("NatGatewayNotFound", lambda b, i: i in b.nat_gateways),
    "rtb": ("InvalidRouteTableID.NotFound", lambda b, i: i in b.route_tables),
    "sg": ("InvalidGroup.NotFound", lambda b, i: any(i in groups for groups in b.groups.values())),
    "subnet": ("InvalidSubnetID.NotFound", lambda b, i: any(i in by_zone for by_zone in b.subnets.values())),
    "vol": ("InvalidVolume.NotFound", lambda b, i: i in b.volumes),
    "vpc": ("InvalidVpcID.NotFound", lambda b, i: i in b.vpcs),
}
"""Id prefix → (error code, whether the backend has the id)."""


class NetworkActions(Ec2Actions):
    """Subnets, security groups, NAT gateways and tags."""

    def describe_subnets(self) -> ActionResult:
        """Return subnets as moto does, in pages."""
        return self._paged(super().describe_subnets(), "Subnets")

    def describe_security_groups(self) -> ActionResult:
        """Return security groups as moto does, in pages."""
        return self._paged(super().describe_security_groups(), "SecurityGroups")

    def _paged(self, answer: ActionResult, key: str) -> ActionResult:
        result = dict(answer.result)
        page, following = self.page(list(result[key]), PAGE)
        return ActionResult({**result, key: page, "NextToken": following})

    def delete_subnet(self) -> Any:
        """Refuse while an interface or a NAT gateway is in the subnet."""
        subnet_id = self.parameter("SubnetId")
        backend = self.ec2_backend
        occupied = any(interface.subnet.id == subnet_id for interface in backend.enis.values())
        gateways = any(
            g.subnet_id == subnet_id and g.state != "deleted" for g in backend.nat_gateways.values()
        )
        if occupied or gateways:
            raise EC2ClientError(
                "DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
            )
        answer = super().delete_subnet()
        backend.tags.pop(subnet_id, None)
        return answer

    def delete_security_group(self) -> Any:
        """Refuse while an interface uses the group or a rule of another group names it."""
        group_id = self.parameter("GroupId")
        if group_id and self._is_group_used(group_id):
            raise EC2ClientError("DependencyViolation", f"resource {group_id} has a dependent object")
        answer = super().delete_security_group()
        self.ec2_backend.tags.pop(group_id, None)
        return answer

    def _is_group_used(self, group_id: str) -> bool:
        backend = self.ec2_backend
        if any(group.id == group_id for i in backend.enis.values() for group in i.group_set):
            return True
        others = [g for groups in backend.groups.values() for g in groups.values() if g.id != group_id]
        rules = [rule for group in others for rule in (*group.ingress_rules, *group.egress_rules)]
        return any((rule.source_group or {}).get("GroupId") == group_id for rule in rules)

    def delete_nat_gateway(self) -> Any:
        """Delete a gateway and the interface that moto leaves behind."""
        gateway = self.ec2_backend.nat_gateways.get(self.parameter("NatGatewayId"))
        answer = super().delete_nat_gateway()
        if gateway is not None:
            self.ec2_backend.enis.pop(gateway._eni.id, None)
        return answer

    def create_tags(self) -> str:
        """Tag resources that exist; keys that start with `aws:` are EC2's own."""
        for tag in self.parameter("Tags") or ():
            if str(tag.get("Key", "")).startswith("aws:"):
                raise EC2ClientError(
                    "InvalidParameterValue",
                    f"Value ( {tag['Key']} ) for parameter key is invalid. Tag keys starting with 'aws:' are "
                    "reserved for internal use",
                )
        for resource_id in self.parameter("Resources") or ():
            code, exists = _STORES.get(str(resource_id).split("-")[0], ("", None))
            if exists is not None and not exists(self.ec2_backend, resource_id):
                raise EC2ClientError(code, f"The ID '{resource_id}' does not exist")
        self.error_on_dryrun()
        tags = {tag["Key"]: tag.get("Value") or "" for tag in self.parameter("Tags") or ()}
        self.ec2_backend.create_tags(list(self.parameter("Resources") or ()), tags)
        return self.answer("CreateTags", {})
