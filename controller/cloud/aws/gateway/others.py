"""The small gateways: IAM instance profiles, EKS cluster, SQS queue, SSM parameters, price list.

Used by the provider's modules and by `controller.interruption`. As `ec2`, each method is a row of
`framework.iam.calls`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from controller.cloud.aws.errors import AwsAlreadyExists, AwsNotFound
from controller.cloud.aws.gateway.caller import AwsSession, Caller
from controller.cloud.aws.gateway.records import ProfileRecord
from framework.iam.calls import Service, call

if TYPE_CHECKING:
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_iam.type_defs import InstanceProfileTypeDef
    from mypy_boto3_iam.type_defs import TagTypeDef as IamTagTypeDef
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

__all__ = ["ClusterRecord", "Eks", "Iam", "Message", "PriceList", "Sqs", "Ssm", "pricing_region"]


def _profile(raw: InstanceProfileTypeDef) -> ProfileRecord:
    return ProfileRecord(
        name=raw["InstanceProfileName"],
        path=raw["Path"],
        roles=tuple(role["RoleName"] for role in raw["Roles"]),
    )


class Iam:
    """Instance profiles."""

    def __init__(self, session: AwsSession, caller: Caller) -> None:
        """Make the client."""
        self._client: IAMClient = session.boto.client("iam", config=session.config())
        self._caller = caller

    async def profile(self, name: str) -> ProfileRecord | None:
        """Return the profile of that name, or None."""
        row = call(Service.IAM, "GetInstanceProfile")
        try:
            return await self._caller.run(
                row,
                lambda: _profile(
                    self._client.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
                ),
            )
        except AwsNotFound:
            return None

    async def profiles(self, path_prefix: str) -> tuple[ProfileRecord, ...]:
        """Return the profiles under a path, by name."""
        row = call(Service.IAM, "ListInstanceProfiles")

        def read() -> tuple[ProfileRecord, ...]:
            pages = self._client.get_paginator("list_instance_profiles").paginate(PathPrefix=path_prefix)
            found = [_profile(item) for page in pages for item in page["InstanceProfiles"]]
            return tuple(sorted(found, key=lambda item: item.name))

        return await self._caller.run(row, read)

    async def create_profile(self, name: str, path: str, tags: Mapping[str, str]) -> None:
        """Make a profile without a role; one of that name that is there already is fine."""
        row = call(Service.IAM, "CreateInstanceProfile")
        wire: list[IamTagTypeDef] = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
        try:
            await self._caller.run(
                row,
                lambda: self._client.create_instance_profile(InstanceProfileName=name, Path=path, Tags=wire),
            )
        except AwsAlreadyExists:
            return

    async def add_role(self, profile: str, role: str) -> None:
        """Attach a role to a profile. Raises: AwsNotFound when the role does not exist."""
        row = call(Service.IAM, "AddRoleToInstanceProfile")
        await self._caller.run(
            row,
            lambda: self._client.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=role),
        )

    async def remove_role(self, profile: str, role: str) -> None:
        """Detach a role; a pair that is gone already is fine."""
        row = call(Service.IAM, "RemoveRoleFromInstanceProfile")
        try:
            await self._caller.run(
                row,
                lambda: self._client.remove_role_from_instance_profile(
                    InstanceProfileName=profile, RoleName=role
                ),
            )
        except AwsNotFound:
            return

    async def delete_profile(self, profile: str) -> None:
        """Delete a profile without a role; one that is gone already is fine."""
        row = call(Service.IAM, "DeleteInstanceProfile")
        try:
            await self._caller.run(
                row, lambda: self._client.delete_instance_profile(InstanceProfileName=profile)
            )
        except AwsNotFound:
            return


@attrs.frozen(kw_only=True)
class ClusterRecord:
    """What the controller reads of the EKS cluster."""

    endpoint: str
    version: str
    service_cidr: str | None
    vpc: str | None


class Eks:
    """The cluster's own description."""

    def __init__(self, session: AwsSession, caller: Caller) -> None:
        """Make the client."""
        self._client: EKSClient = session.boto.client("eks", config=session.config())
        self._caller = caller

    async def cluster(self, name: str) -> ClusterRecord:
        """Return the cluster of that name. Raises: AwsError."""
        row = call(Service.EKS, "DescribeCluster")

        def read() -> ClusterRecord:
            raw = self._client.describe_cluster(name=name)["cluster"]
            network = raw.get("kubernetesNetworkConfig", {})
            cidr = network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr")
            return ClusterRecord(
                endpoint=raw.get("endpoint", ""),
                version=raw.get("version", ""),
                service_cidr=cidr or None,
                vpc=raw.get("resourcesVpcConfig", {}).get("vpcId") or None,
            )

        return await self._caller.run(row, read)


class Ssm:
    """Public parameters."""

    def __init__(self, session: AwsSession, caller: Caller) -> None:
        """Make the client."""
        self._client: SSMClient = session.boto.client("ssm", config=session.config())
        self._caller = caller

    async def parameter(self, name: str) -> str | None:
        """Return a parameter's value by name or ARN, or None when there is none."""
        row = call(Service.SSM, "GetParameter")
        try:
            return await self._caller.run(
                row, lambda: self._client.get_parameter(Name=name)["Parameter"].get("Value", "")
            )
        except AwsNotFound:
            return None


@attrs.frozen(kw_only=True, slots=True)
class Message:
    """One message of the queue."""

    body: str
    receipt: str


class Sqs:
    """The interruption queue."""

    MAX_MESSAGES: Final = 10
    WAIT_S: Final = 20
    VISIBILITY_S: Final = 20

    def __init__(self, session: AwsSession, caller: Caller) -> None:
        """Make the client."""
        self._client: SQSClient = session.boto.client("sqs", config=session.config())
        self._caller = caller

    async def queue_url(self, name: str, account: str | None = None) -> str:
        """Return the URL of a queue, of this account unless another is named. Raises: AwsNotFound."""
        row = call(Service.SQS, "GetQueueUrl")

        def read() -> str:
            if account is None:
                return self._client.get_queue_url(QueueName=name)["QueueUrl"]
            return self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]

        return await self._caller.run(row, read)

    async def receive(self, url: str) -> tuple[Message, ...]:
        """Wait up to 20 s for at most 10 messages, hidden from other readers for 20 s."""
        row = call(Service.SQS, "ReceiveMessage")

        def read() -> tuple[Message, ...]:
            answer = self._client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=self.MAX_MESSAGES,
                WaitTimeSeconds=self.WAIT_S,
                VisibilityTimeout=self.VISIBILITY_S,
                AttributeNames=["SentTimestamp"],
                MessageAttributeNames=["All"],
            )
            return tuple(
                Message(body=item.get("Body", ""), receipt=item.get("ReceiptHandle", ""))
                for item in answer.get("Messages", ())
            )

        return await self._caller.run(row, read)

    async def delete(self, url: str, receipt: str) -> None:
        """Remove a message that was dealt with."""
        row = call(Service.SQS, "DeleteMessage")
        await self._caller.run(row, lambda: self._client.delete_message(QueueUrl=url, ReceiptHandle=receipt))


def pricing_region(region: str) -> str:
    """Return the region whose price list endpoint serves a region (spec aws/instances §7)."""
    for prefix, endpoint in (("ap-", "ap-south-1"), ("cn-", "cn-northwest-1"), ("eu-", "eu-central-1")):
        if region.startswith(prefix):
            return endpoint
    return "us-east-1"


class PriceList:
    """On-demand prices."""

    def __init__(self, session: AwsSession, caller: Caller) -> None:
        """Make the client, in the region that serves the session's prices."""
        self._client: PricingClient = session.boto.client(
            "pricing", region_name=pricing_region(session.region), config=session.config()
        )
        self._caller = caller
        self._region = session.region

    async def on_demand(self, *, tenancy: str, family: str) -> Mapping[str, float]:
        """Return Linux prices, USD (CNY in China) an hour by type, of a tenancy and product family."""
        row = call(Service.PRICING, "GetProducts")
        wanted = {
            "regionCode": self._region,
            "serviceCode": "AmazonEC2",
            "preInstalledSw": "NA",
            "operatingSystem": "Linux",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
            "tenancy": tenancy,
            "productFamily": family,
        }
        currency = "CNY" if self._region.startswith("cn-") else "USD"

        def read() -> dict[str, float]:
            pages = self._client.get_paginator("get_products").paginate(
                ServiceCode="AmazonEC2",
                Filters=[
                    {"Field": field, "Type": "TERM_MATCH", "Value": value} for field, value in wanted.items()
                ],
                PaginationConfig={"PageSize": row.page_size or 100},
            )
            return dict(_prices((text for page in pages for text in page["PriceList"]), currency))

        return await self._caller.run(row, read)


def _prices(products: Iterator[str], currency: str) -> Iterator[tuple[str, float]]:
    for text in products:
        product: Mapping[str, Any] = json.loads(text)
        name = product.get("product", {}).get("attributes", {}).get("instanceType")
        price = _hourly(product.get("terms", {}).get("OnDemand", {}), currency)
        if name and price:
            yield name, price


def _hourly(terms: Mapping[str, Any], currency: str) -> float | None:
    for term in terms.values():
        for dimension in term.get("priceDimensions", {}).values():
            try:
                price = float(dimension.get("pricePerUnit", {}).get(currency, "0"))
            except ValueError:
                continue
            if price > 0:
                return price
    return None
