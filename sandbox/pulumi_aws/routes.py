"""Route tables, routes and single tags.

Called by the provider. Owns the objects whose ids the official provider composes
from other ids.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sandbox.pulumi_aws.ec2 import Ec2Resource
from sandbox.pulumi_aws.resource import Resource, picked
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import Properties

_TARGETS = {
    "gatewayId": "GatewayId",
    "natGatewayId": "NatGatewayId",
    "networkInterfaceId": "NetworkInterfaceId",
    "transitGatewayId": "TransitGatewayId",
    "vpcPeeringConnectionId": "VpcPeeringConnectionId",
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
}
_DESTINATIONS = {
    "destinationCidrBlock": "DestinationCidrBlock",
    "destinationIpv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}


def _table(session: Session, table: str, inputs: Properties) -> dict[str, Any]:
    client = session.client("ec2", inputs.get("region"))
    found: dict[str, Any] = client.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]
    return found


class RouteTable(Ec2Resource):
    """A table of routes; the routes themselves are resources of their own."""

    type = "aws:ec2/routeTable:RouteTable"
    kind = "route-table"
    force_new = frozenset({"vpcId"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the table."""
        if inputs.get("routes"):
            raise ValueError(
                "RouteTable.routes is not carried by the sandbox; declare aws.ec2.Route resources"
            )
        answer = session.client("ec2", inputs.get("region")).create_route_table(
            VpcId=inputs["vpcId"], **self._tagging(session, inputs)
        )
        return str(answer["RouteTable"]["RouteTableId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The table, without its routes."""
        found = _table(session, identifier, inputs)
        return {
            "arn": session.arn("ec2", f"route-table/{identifier}", region=inputs.get("region")),
            "ownerId": found.get("OwnerId", session.account),
            "vpcId": found["VpcId"],
            **self._tag_outputs(session, inputs, found.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the table."""
        session.client("ec2", state.get("region")).delete_route_table(RouteTableId=identifier)


class Route(Resource):
    """One route of a table."""

    type = "aws:ec2/route:Route"
    force_new = frozenset({"routeTableId", *_DESTINATIONS})

    def create(self, session: Session, inputs: Properties) -> str:
        """Add the route; its id is that of the official provider: table and destination hashed."""
        session.client("ec2", inputs.get("region")).create_route(
            RouteTableId=inputs["routeTableId"], **picked(inputs, _DESTINATIONS), **picked(inputs, _TARGETS)
        )
        return route_id(inputs)

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The route, found by its destination."""
        destination = picked(inputs, _DESTINATIONS)
        for route in _table(session, inputs["routeTableId"], inputs).get("Routes", []):
            if all(route.get(name) == value for name, value in destination.items()):
                targets = {key: route[name] for key, name in _TARGETS.items() if route.get(name)}
                return {
                    "routeTableId": inputs["routeTableId"],
                    **{key: inputs[key] for key in _DESTINATIONS if key in inputs},
                    **targets,
                    "origin": route.get("Origin", "CreateRoute"),
                    "state": route.get("State", "active"),
                    "region": inputs.get("region") or session.region,
                }
        return None

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Point the route elsewhere."""
        session.client("ec2", new.get("region")).replace_route(
            RouteTableId=new["routeTableId"], **picked(new, _DESTINATIONS), **picked(new, _TARGETS)
        )

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the route."""
        session.client("ec2", state.get("region")).delete_route(
            RouteTableId=state["routeTableId"], **picked(state, _DESTINATIONS)
        )


def route_id(inputs: Properties) -> str:
    """`r-<table><hash of the destination>`."""
    destination = next(str(inputs[key]) for key in _DESTINATIONS if inputs.get(key))
    return f"r-{inputs['routeTableId']}{hashlib.sha256(destination.encode()).hexdigest()[:10]}"


class RouteTableAssociation(Resource):
    """Which table a subnet uses.

    The official provider moves a subnet to another table in place and changes the id;
    here that is a replacement.
    """

    type = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    force_new = frozenset({"subnetId", "gatewayId", "routeTableId"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Associate the subnet."""
        answer = session.client("ec2", inputs.get("region")).associate_route_table(
            RouteTableId=inputs["routeTableId"],
            **picked(inputs, {"subnetId": "SubnetId", "gatewayId": "GatewayId"}),
        )
        return str(answer["AssociationId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The association, or None when the table no longer lists it."""
        for item in _table(session, inputs["routeTableId"], inputs).get("Associations", []):
            if item["RouteTableAssociationId"] == identifier:
                return {
                    "routeTableId": inputs["routeTableId"],
                    "subnetId": item.get("SubnetId"),
                    "gatewayId": item.get("GatewayId"),
                    "region": inputs.get("region") or session.region,
                }
        return None

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """End the association."""
        session.client("ec2", state.get("region")).disassociate_route_table(AssociationId=identifier)


class Tag(Resource):
    """One tag on an object that something else made."""

    type = "aws:ec2/tag:Tag"
    force_new = frozenset({"resourceId", "key"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Set the tag."""
        self.configure(session, "", inputs)
        return f"{inputs['resourceId']},{inputs['key']}"

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Set the value."""
        session.client("ec2", inputs.get("region")).create_tags(
            Resources=[inputs["resourceId"]], Tags=[{"Key": inputs["key"], "Value": inputs["value"]}]
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The tag, or None when the object does not carry it."""
        resource, key = identifier.split(",", 1)
        answer = session.client("ec2", inputs.get("region")).describe_tags(
            Filters=[{"Name": "resource-id", "Values": [resource]}, {"Name": "key", "Values": [key]}]
        )
        for tag in answer["Tags"]:
            region = inputs.get("region") or session.region
            return {"resourceId": resource, "key": key, "value": tag["Value"], "region": region}
        return None

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the tag."""
        resource, key = identifier.split(",", 1)
        session.client("ec2", state.get("region")).delete_tags(Resources=[resource], Tags=[{"Key": key}])


RESOURCES: tuple[Resource, ...] = (RouteTable(), Route(), RouteTableAssociation(), Tag())
