"""EC2 networking: the resource types a cluster's network is made of.

Called by the provider. Owns ForceNew and defaults of these types as the official
provider documents them; never touches instances.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.pulumi_aws.resource import (
    Resource,
    changed_tags,
    declared_tags,
    picked,
    tag_list,
    tag_map,
)
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.waiting import wait_until
from sandbox.pulumi_aws.wire import Properties


class Ec2Resource(Resource):
    """An EC2 object with tags."""

    kind: ClassVar[str]
    """The resource kind in tag specifications."""

    def _tagging(self, session: Session, inputs: Properties) -> dict[str, Any]:
        tags = session.tags(inputs)
        if not tags:
            return {}
        return {"TagSpecifications": [{"ResourceType": self.kind, "Tags": tag_list(tags)}]}

    def _tag_outputs(
        self, session: Session, inputs: Properties, tags: list[dict[str, str]] | None
    ) -> Properties:
        found = tag_map(tags)
        return {
            "tags": declared_tags(inputs, found, session),
            "tagsAll": found,
            "region": inputs.get("region") or session.region,
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set attributes and tags again."""
        client = session.client("ec2", new.get("region"))
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.delete_tags(Resources=[identifier], Tags=[{"Key": key} for key in gone])
        if wanted:
            client.create_tags(Resources=[identifier], Tags=tag_list(wanted))
        self.configure(session, identifier, new)


def _first(items: list[dict[str, Any]]) -> dict[str, Any]:
    return items[0] if items else {}


class Vpc(Ec2Resource):
    """A virtual private cloud."""

    type = "aws:ec2/vpc:Vpc"
    kind = "vpc"
    force_new = frozenset({"cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"})
    defaults: ClassVar = {"enableDnsSupport": True, "instanceTenancy": "default"}

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the VPC."""
        answer = session.client("ec2", inputs.get("region")).create_vpc(
            CidrBlock=inputs["cidrBlock"],
            InstanceTenancy=inputs["instanceTenancy"],
            **self._tagging(session, inputs),
        )
        return str(answer["Vpc"]["VpcId"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Set the attributes, one a call."""
        client = session.client("ec2", inputs.get("region"))
        for key, name in (
            ("enableDnsSupport", "EnableDnsSupport"),
            ("enableDnsHostnames", "EnableDnsHostnames"),
            ("enableNetworkAddressUsageMetrics", "EnableNetworkAddressUsageMetrics"),
        ):
            if key in inputs:
                client.modify_vpc_attribute(VpcId=identifier, **{name: {"Value": inputs[key]}})

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The VPC with the ids of what AWS makes along with it."""
        client = session.client("ec2", inputs.get("region"))
        vpc = client.describe_vpcs(VpcIds=[identifier])["Vpcs"][0]

        def attribute(name: str) -> bool:
            key = name[0].upper() + name[1:]
            return bool(client.describe_vpc_attribute(VpcId=identifier, Attribute=name)[key]["Value"])

        def filters(**extra: str) -> list[dict[str, Any]]:
            pairs = {"vpc-id": identifier, **{key.replace("_", "-"): text for key, text in extra.items()}}
            return [{"Name": key, "Values": [text]} for key, text in pairs.items()]

        main = _first(
            client.describe_route_tables(
                Filters=[*filters(), {"Name": "association.main", "Values": ["true"]}]
            )["RouteTables"]
        )
        acl = _first(client.describe_network_acls(Filters=filters(default="true"))["NetworkAcls"])
        group = _first(
            client.describe_security_groups(Filters=filters(group_name="default"))["SecurityGroups"]
        )
        return {
            "arn": session.arn("ec2", f"vpc/{identifier}", region=inputs.get("region")),
            "cidrBlock": vpc["CidrBlock"],
            "instanceTenancy": vpc["InstanceTenancy"],
            "dhcpOptionsId": vpc["DhcpOptionsId"],
            "ownerId": vpc["OwnerId"],
            "enableDnsSupport": attribute("enableDnsSupport"),
            "enableDnsHostnames": attribute("enableDnsHostnames"),
            "enableNetworkAddressUsageMetrics": attribute("enableNetworkAddressUsageMetrics"),
            "mainRouteTableId": main.get("RouteTableId", ""),
            "defaultRouteTableId": main.get("RouteTableId", ""),
            "defaultNetworkAclId": acl.get("NetworkAclId", ""),
            "defaultSecurityGroupId": group.get("GroupId", ""),
            **self._tag_outputs(session, inputs, vpc.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the VPC."""
        session.client("ec2", state.get("region")).delete_vpc(VpcId=identifier)


class Subnet(Ec2Resource):
    """A subnet of a VPC in one zone."""

    type = "aws:ec2/subnet:Subnet"
    kind = "subnet"
    force_new = frozenset({"vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "ipv6Native"})
    defaults: ClassVar = {"mapPublicIpOnLaunch": False, "assignIpv6AddressOnCreation": False}

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the subnet."""
        answer = session.client("ec2", inputs.get("region")).create_subnet(
            VpcId=inputs["vpcId"],
            **picked(
                inputs,
                {
                    "cidrBlock": "CidrBlock",
                    "availabilityZone": "AvailabilityZone",
                    "availabilityZoneId": "AvailabilityZoneId",
                },
            ),
            **self._tagging(session, inputs),
        )
        return str(answer["Subnet"]["SubnetId"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Say whether instances get public addresses."""
        session.client("ec2", inputs.get("region")).modify_subnet_attribute(
            SubnetId=identifier, MapPublicIpOnLaunch={"Value": inputs["mapPublicIpOnLaunch"]}
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The subnet."""
        client = session.client("ec2", inputs.get("region"))
        subnet = client.describe_subnets(SubnetIds=[identifier])["Subnets"][0]
        return {
            "arn": subnet["SubnetArn"],
            "availabilityZone": subnet["AvailabilityZone"],
            "availabilityZoneId": subnet["AvailabilityZoneId"],
            "cidrBlock": subnet["CidrBlock"],
            "vpcId": subnet["VpcId"],
            "ownerId": subnet["OwnerId"],
            "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
            "assignIpv6AddressOnCreation": subnet["AssignIpv6AddressOnCreation"],
            "privateDnsHostnameTypeOnLaunch": "ip-name",
            **self._tag_outputs(session, inputs, subnet.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the subnet."""
        session.client("ec2", state.get("region")).delete_subnet(SubnetId=identifier)


class InternetGateway(Ec2Resource):
    """The way out of a VPC's public subnets."""

    type = "aws:ec2/internetGateway:InternetGateway"
    kind = "internet-gateway"
    force_new = frozenset({"vpcId"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the gateway."""
        client = session.client("ec2", inputs.get("region"))
        answer = client.create_internet_gateway(**self._tagging(session, inputs))
        return str(answer["InternetGateway"]["InternetGatewayId"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Attach it to its VPC unless it is."""
        client = session.client("ec2", inputs.get("region"))
        answer = client.describe_internet_gateways(InternetGatewayIds=[identifier])
        attached = {item["VpcId"] for item in answer["InternetGateways"][0].get("Attachments", [])}
        if inputs.get("vpcId") and inputs["vpcId"] not in attached:
            client.attach_internet_gateway(InternetGatewayId=identifier, VpcId=inputs["vpcId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The gateway."""
        client = session.client("ec2", inputs.get("region"))
        gateway = client.describe_internet_gateways(InternetGatewayIds=[identifier])["InternetGateways"][0]
        attachment = _first(gateway.get("Attachments", []))
        return {
            "arn": session.arn("ec2", f"internet-gateway/{identifier}", region=inputs.get("region")),
            "ownerId": gateway.get("OwnerId", session.account),
            "vpcId": attachment.get("VpcId", ""),
            **self._tag_outputs(session, inputs, gateway.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Detach and remove the gateway."""
        client = session.client("ec2", state.get("region"))
        if state.get("vpcId"):
            client.detach_internet_gateway(InternetGatewayId=identifier, VpcId=state["vpcId"])
        client.delete_internet_gateway(InternetGatewayId=identifier)


class Eip(Ec2Resource):
    """A public address."""

    type = "aws:ec2/eip:Eip"
    kind = "elastic-ip"
    force_new = frozenset({"domain", "address", "publicIpv4Pool", "networkBorderGroup"})
    defaults: ClassVar = {"domain": "vpc"}

    def create(self, session: Session, inputs: Properties) -> str:
        """Allocate the address."""
        answer = session.client("ec2", inputs.get("region")).allocate_address(
            Domain=inputs["domain"], **self._tagging(session, inputs)
        )
        return str(answer["AllocationId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The address."""
        client = session.client("ec2", inputs.get("region"))
        address = client.describe_addresses(AllocationIds=[identifier])["Addresses"][0]
        return {
            "allocationId": identifier,
            "arn": session.arn("ec2", f"elastic-ip/{identifier}", region=inputs.get("region")),
            "domain": address.get("Domain", "vpc"),
            "publicIp": address["PublicIp"],
            "associationId": address.get("AssociationId", ""),
            "networkInterface": address.get("NetworkInterfaceId", ""),
            **self._tag_outputs(session, inputs, address.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Release the address."""
        session.client("ec2", state.get("region")).release_address(AllocationId=identifier)


class NatGateway(Ec2Resource):
    """The way out of private subnets."""

    type = "aws:ec2/natGateway:NatGateway"
    kind = "natgateway"
    force_new = frozenset({"allocationId", "subnetId", "connectivityType", "privateIp"})
    defaults: ClassVar = {"connectivityType": "public"}

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the gateway."""
        answer = session.client("ec2", inputs.get("region")).create_nat_gateway(
            SubnetId=inputs["subnetId"],
            ConnectivityType=inputs["connectivityType"],
            **picked(inputs, {"allocationId": "AllocationId"}),
            **self._tagging(session, inputs),
        )
        return str(answer["NatGateway"]["NatGatewayId"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Wait until it forwards."""
        wait_until(
            f"NAT gateway {identifier} is available",
            lambda: (self._describe(session, identifier, inputs) or {}).get("State") == "available",
        )

    def _describe(self, session: Session, identifier: str, inputs: Properties) -> dict[str, Any] | None:
        client = session.client("ec2", inputs.get("region"))
        gateway = _first(client.describe_nat_gateways(NatGatewayIds=[identifier])["NatGateways"])
        return None if gateway.get("State", "deleted") == "deleted" else gateway

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The gateway, or None once it is deleted; AWS shows it for a while after."""
        gateway = self._describe(session, identifier, inputs)
        if gateway is None:
            return None
        address = _first(gateway.get("NatGatewayAddresses", []))
        return {
            "allocationId": address.get("AllocationId", ""),
            "connectivityType": gateway.get("ConnectivityType", "public"),
            "networkInterfaceId": address.get("NetworkInterfaceId", ""),
            "privateIp": address.get("PrivateIp", ""),
            "publicIp": address.get("PublicIp", ""),
            "subnetId": gateway["SubnetId"],
            **self._tag_outputs(session, inputs, gateway.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the gateway and wait until its address is free."""
        session.client("ec2", state.get("region")).delete_nat_gateway(NatGatewayId=identifier)
        wait_until(
            f"NAT gateway {identifier} is deleted",
            lambda: self._describe(session, identifier, state) is None,
        )


class VpcEndpoint(Ec2Resource):
    """A private way to a service of AWS."""

    type = "aws:ec2/vpcEndpoint:VpcEndpoint"
    kind = "vpc-endpoint"
    force_new = frozenset({"vpcId", "serviceName", "vpcEndpointType"})
    defaults: ClassVar = {"vpcEndpointType": "Gateway"}

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the endpoint."""
        answer = session.client("ec2", inputs.get("region")).create_vpc_endpoint(
            VpcId=inputs["vpcId"],
            ServiceName=inputs["serviceName"],
            VpcEndpointType=inputs["vpcEndpointType"],
            **picked(
                inputs,
                {
                    "routeTableIds": "RouteTableIds",
                    "subnetIds": "SubnetIds",
                    "securityGroupIds": "SecurityGroupIds",
                    "privateDnsEnabled": "PrivateDnsEnabled",
                },
            ),
            **self._tagging(session, inputs),
        )
        return str(answer["VpcEndpoint"]["VpcEndpointId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The endpoint."""
        client = session.client("ec2", inputs.get("region"))
        found = _first(client.describe_vpc_endpoints(VpcEndpointIds=[identifier])["VpcEndpoints"])
        if found.get("State", "deleted") == "deleted":
            return None
        return {
            "arn": session.arn("ec2", f"vpc-endpoint/{identifier}", region=inputs.get("region")),
            "vpcId": found["VpcId"],
            "serviceName": found["ServiceName"],
            "vpcEndpointType": found.get("VpcEndpointType", "Gateway"),
            "state": found["State"],
            "ownerId": found.get("OwnerId", session.account),
            "routeTableIds": sorted(found.get("RouteTableIds", [])),
            "subnetIds": sorted(found.get("SubnetIds", [])),
            "securityGroupIds": sorted(group["GroupId"] for group in found.get("Groups", [])),
            "privateDnsEnabled": found.get("PrivateDnsEnabled", False),
            **self._tag_outputs(session, inputs, found.get("Tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set tags, and add and remove route tables, subnets and groups."""
        super().update(session, identifier, old, new)
        changes: dict[str, list[str]] = {}
        for key, name in (
            ("routeTableIds", "RouteTableIds"),
            ("subnetIds", "SubnetIds"),
            ("securityGroupIds", "SecurityGroupIds"),
        ):
            before, after = set(old.get(key) or ()), set(new.get(key) or ())
            changes[f"Add{name}"] = sorted(after - before)
            changes[f"Remove{name}"] = sorted(before - after)
        changes = {name: ids for name, ids in changes.items() if ids}
        if changes:
            client = session.client("ec2", new.get("region"))
            client.modify_vpc_endpoint(VpcEndpointId=identifier, **changes)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the endpoint."""
        session.client("ec2", state.get("region")).delete_vpc_endpoints(VpcEndpointIds=[identifier])


RESOURCES: tuple[Resource, ...] = (
    Vpc(),
    Subnet(),
    InternetGateway(),
    Eip(),
    NatGateway(),
    VpcEndpoint(),
)
