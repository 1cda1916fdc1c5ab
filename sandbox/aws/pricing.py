"""The price list service: GetProducts of AmazonEC2 from data, paged. moto has no pricing at all.

Answers carry the shape of the real price list, one JSON text per product. Sold here: on-demand Linux, shared
tenancy, and bare metal under dedicated tenancy (aws/instances §7, runs A and B).
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from framework.data import on_demand_prices
from sandbox.aws.errors import AwsError, NotModelled

__all__ = ["answer"]

PAGE = 100
OFFER_TERM, RATE = "JRTCKXETXF", "6YS6EN2CT7"
"""The codes of the on-demand term and its hourly rate, the same for every product."""


def answer(action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Answer an operation of the service. Raises NotModelled for all but GetProducts of AmazonEC2."""
    if action != "GetProducts":
        raise NotModelled(f"pricing {action}")
    if parameters.get("ServiceCode") != "AmazonEC2":
        raise NotModelled(f"pricing GetProducts ServiceCode={parameters.get('ServiceCode')}")
    wanted = {}
    for test in parameters.get("Filters") or ():
        if test.get("Type") != "TERM_MATCH":
            raise NotModelled(f"pricing GetProducts filter type {test.get('Type')}")
        wanted[test["Field"]] = test["Value"]
    region = wanted.get("regionCode")
    if region is None:
        raise NotModelled("pricing GetProducts without a regionCode filter")
    found = [product for product in _products(region) if _matches(product, wanted)]
    return _page(found, parameters)


def _page(found: list[dict[str, Any]], parameters: Mapping[str, Any]) -> dict[str, Any]:
    size = min(int(parameters.get("MaxResults") or PAGE), PAGE)
    token = parameters.get("NextToken")
    try:
        start = int(base64.b64decode(token, validate=True)) if token else 0
    except ValueError as exc:
        raise AwsError("InvalidNextTokenException", "The next token is invalid.") from exc
    result: dict[str, Any] = {
        "FormatVersion": "aws_v1",
        "PriceList": [json.dumps(product) for product in found[start : start + size]],
    }
    if start + size < len(found):
        result["NextToken"] = base64.b64encode(str(start + size).encode()).decode()
    return result


def _matches(product: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    known = {
        **product["product"]["attributes"],
        "productFamily": product["product"]["productFamily"],
        "serviceCode": product["serviceCode"],
    }
    return all(known.get(field) == value for field, value in wanted.items())


def _products(region: str) -> Iterator[dict[str, Any]]:
    for instance_type, price in sorted(on_demand_prices(region).items()):
        metal = bool(INSTANCE_TYPES.get(instance_type, {}).get("BareMetal", "metal" in instance_type))
        yield _product(region, instance_type, price, metal)


def _product(region: str, instance_type: str, price: float, metal: bool) -> dict[str, Any]:
    sku = uuid.uuid5(uuid.NAMESPACE_DNS, f"{region}/{instance_type}").hex[:16].upper()
    rate_code = f"{sku}.{OFFER_TERM}.{RATE}"
    rate = {
        "unit": "Hrs",
        "rateCode": rate_code,
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${price} per On Demand Linux {instance_type} Instance Hour",
        "pricePerUnit": {"USD": f"{price:.10f}"},
    }
    attributes = {
        "capacitystatus": "Used",
        "instanceType": instance_type,
        "marketoption": "OnDemand",
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "regionCode": region,
        "servicecode": "AmazonEC2",
        "tenancy": "Dedicated" if metal else "Shared",
    }
    family = "Compute Instance (bare metal)" if metal else "Compute Instance"
    term = {"priceDimensions": {rate_code: rate}, "sku": sku, "offerTermCode": OFFER_TERM}
    return {
        "product": {"productFamily": family, "attributes": attributes, "sku": sku},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {f"{sku}.{OFFER_TERM}": term}},
    }
