"""The functions of the provider: look-ups that programs make.

Called by the provider's Invoke. Owns the result shapes of the official provider's
release 7 for these functions; a function that is not here is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sandbox.pulumi_aws.resource import Function, tag_map
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import Properties


def _caller_identity(session: Session, _args: Properties) -> Properties:
    found = session.client("sts").get_caller_identity()
    return {
        "accountId": found["Account"],
        "arn": found["Arn"],
        "userId": found["UserId"],
        "id": found["Account"],
    }


def _region(session: Session, args: Properties) -> Properties:
    name = args.get("region") or session.region
    return {
        "id": name,
        "name": name,
        "region": name,
        "endpoint": f"ec2.{name}.amazonaws.com",
        "description": "",
    }


def _partition(session: Session, _args: Properties) -> Properties:
    prefixes = {"cn-": ("aws-cn", "amazonaws.com.cn"), "us-gov-": ("aws-us-gov", "amazonaws.com")}
    found = [pair for prefix, pair in prefixes.items() if session.region.startswith(prefix)]
    partition, suffix = found[0] if found else ("aws", "amazonaws.com")
    reverse = ".".join(reversed(suffix.split(".")))
    return {"id": partition, "partition": partition, "dnsSuffix": suffix, "reverseDnsPrefix": reverse}


def _availability_zones(session: Session, args: Properties) -> Properties:
    filters = [{"Name": f["name"], "Values": f["values"]} for f in args.get("filters") or []]
    if args.get("state"):
        filters.append({"Name": "state", "Values": [args["state"]]})
    client = session.client("ec2", args.get("region"))
    zones = client.describe_availability_zones(Filters=filters)["AvailabilityZones"]
    zones = sorted(
        (zone for zone in zones if zone["ZoneName"] not in (args.get("excludeNames") or ())),
        key=lambda zone: zone["ZoneName"],
    )
    return {
        "id": args.get("region") or session.region,
        "names": [zone["ZoneName"] for zone in zones],
        "zoneIds": [zone["ZoneId"] for zone in zones],
        "groupNames": sorted({zone.get("GroupName", session.region) for zone in zones}),
        "region": args.get("region") or session.region,
    }


def _eks_cluster(session: Session, args: Properties) -> Properties:
    found = session.client("eks", args.get("region")).describe_cluster(name=args["name"])["cluster"]
    network = found.get("kubernetesNetworkConfig") or {}
    return {
        "id": found["name"],
        "name": found["name"],
        "arn": found["arn"],
        "endpoint": found["endpoint"],
        "version": found["version"],
        "status": found["status"],
        "roleArn": found["roleArn"],
        "platformVersion": found["platformVersion"],
        "createdAt": str(found["createdAt"]),
        "accessConfigs": [found["accessConfig"]] if found.get("accessConfig") else [],
        "certificateAuthorities": [{"data": found["certificateAuthority"]["data"]}],
        "identities": [{"oidcs": [{"issuer": found["identity"]["oidc"]["issuer"]}]}],
        "kubernetesNetworkConfigs": [network] if network else [],
        "vpcConfig": dict(found["resourcesVpcConfig"]),
        "tags": found.get("tags") or {},
        "region": args.get("region") or session.region,
    }


def _iam_roles(session: Session, args: Properties) -> Properties:
    pattern = re.compile(args.get("nameRegex") or ".*")
    pages = (
        session.client("iam").get_paginator("list_roles").paginate(PathPrefix=args.get("pathPrefix") or "/")
    )
    roles = sorted(
        (role["RoleName"], role["Arn"])
        for page in pages
        for role in page["Roles"]
        if pattern.search(role["RoleName"])
    )
    return {
        "id": session.region,
        "names": [name for name, _ in roles],
        "arns": [arn for _, arn in roles],
        "nameRegex": args.get("nameRegex"),
        "pathPrefix": args.get("pathPrefix"),
    }


def _iam_role(session: Session, args: Properties) -> Properties:
    role: dict[str, Any] = session.client("iam").get_role(RoleName=args["name"])["Role"]
    return {
        "id": role["RoleName"],
        "name": role["RoleName"],
        "arn": role["Arn"],
        "path": role["Path"],
        "uniqueId": role["RoleId"],
        "description": role.get("Description", ""),
        "maxSessionDuration": role["MaxSessionDuration"],
        "createDate": role["CreateDate"].isoformat(),
        "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", ""),
        "tags": tag_map(role.get("Tags")),
    }


def _security_groups(session: Session, args: Properties) -> Properties:
    filters = [{"Name": f["name"], "Values": f["values"]} for f in args.get("filters") or []]
    filters += [{"Name": f"tag:{key}", "Values": [value]} for key, value in (args.get("tags") or {}).items()]
    client = session.client("ec2", args.get("region"))
    groups = client.describe_security_groups(Filters=filters)["SecurityGroups"]
    found = sorted(groups, key=lambda group: group["GroupId"])
    return {
        "id": args.get("region") or session.region,
        "ids": [group["GroupId"] for group in found],
        "arns": [group.get("SecurityGroupArn", "") for group in found],
        "vpcIds": [group["VpcId"] for group in found],
        "tags": args.get("tags") or {},
        "region": args.get("region") or session.region,
    }


def _security_group(session: Session, args: Properties) -> Properties:
    client = session.client("ec2", args.get("region"))
    (group,) = client.describe_security_groups(GroupIds=[args["id"]])["SecurityGroups"]
    return {
        "id": group["GroupId"],
        "name": group["GroupName"],
        "arn": group.get("SecurityGroupArn", ""),
        "description": group["Description"],
        "vpcId": group["VpcId"],
        "tags": tag_map(group.get("Tags")),
        "region": args.get("region") or session.region,
    }


def _vpc(session: Session, args: Properties) -> Properties:
    client = session.client("ec2", args.get("region"))
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in (args.get("tags") or {}).items()]
    wanted: dict[str, Any] = {"VpcIds": [args["id"]]} if args.get("id") else {"Filters": filters}
    found = client.describe_vpcs(**wanted)["Vpcs"]
    if len(found) != 1:
        raise ValueError(f"{len(found)} EC2 VPCs match; one was expected")
    (vpc,) = found
    return {
        "id": vpc["VpcId"],
        "arn": session.arn("ec2", f"vpc/{vpc['VpcId']}", region=args.get("region")),
        "cidrBlock": vpc["CidrBlock"],
        "default": vpc["IsDefault"],
        "state": vpc["State"],
        "tags": tag_map(vpc.get("Tags")),
        "region": args.get("region") or session.region,
    }


def _subnets(session: Session, args: Properties) -> Properties:
    filters = [{"Name": f["name"], "Values": f["values"]} for f in args.get("filters") or []]
    filters += [{"Name": f"tag:{key}", "Values": [value]} for key, value in (args.get("tags") or {}).items()]
    found = session.client("ec2", args.get("region")).describe_subnets(Filters=filters)["Subnets"]
    return {
        "id": args.get("region") or session.region,
        "ids": sorted(subnet["SubnetId"] for subnet in found),
        "tags": args.get("tags") or {},
        "region": args.get("region") or session.region,
    }


def _subnet(session: Session, args: Properties) -> Properties:
    client = session.client("ec2", args.get("region"))
    (subnet,) = client.describe_subnets(SubnetIds=[args["id"]])["Subnets"]
    return {
        "id": subnet["SubnetId"],
        "arn": subnet["SubnetArn"],
        "availabilityZone": subnet["AvailabilityZone"],
        "availabilityZoneId": subnet["AvailabilityZoneId"],
        "cidrBlock": subnet["CidrBlock"],
        "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
        "vpcId": subnet["VpcId"],
        "tags": tag_map(subnet.get("Tags")),
        "region": args.get("region") or session.region,
    }


FUNCTIONS: Mapping[str, Function] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:ec2/getSecurityGroup:getSecurityGroup": _security_group,
    "aws:ec2/getSecurityGroups:getSecurityGroups": _security_groups,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:eks/getCluster:getCluster": _eks_cluster,
    "aws:iam/getRoles:getRoles": _iam_roles,
    "aws:iam/getRole:getRole": _iam_role,
}
"""Every function the provider carries, by token."""
