"""Build `prices.json.gz` from the two source tables: run by a developer when prices are refreshed.

    python -m framework.data.generate_prices FOLDER

FOLDER holds `prices-2025-05.json` and `prices-us-east-1-2026-07.json`.

It owns the rule for types a region has no price of: the newer us-east-1 price times the median ratio of that
region to us-east-1, over the types both have; those are listed as estimated. It never reaches the network.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Prices = Mapping[str, float]
"""USD per hour by instance type."""

HOME = "us-east-1"
FULL_REGION = re.compile(r"[a-z]+(-[a-z]+)+-[0-9]+")
"""Names of full regions; local zones have more parts and no price list of their own here."""


def offered_types(region: str) -> frozenset[str]:
    """Return the types offered in a region, by the offerings that come with moto; empty if unknown."""
    from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS  # 1 s to import: only needed here

    rows = INSTANCE_TYPE_OFFERINGS["region"].get(region, ())
    return frozenset(row["InstanceType"] for row in rows)


def median_ratio(part: Prices, whole: Prices) -> float:
    """Return the median of part/whole over the types both have; 1.0 when they have none in common."""
    ratios = [part[name] / whole[name] for name in sorted(part.keys() & whole.keys())]
    return statistics.median(ratios) if ratios else 1.0


def complete(
    own: Prices, reference: Prices, old_reference: Prices, wanted: frozenset[str]
) -> dict[str, float]:
    """Return estimates, USD per hour rounded to 6 digits, for the wanted types that `own` does not price."""
    ratio = median_ratio(own, old_reference)
    missing = sorted((wanted & reference.keys()) - own.keys())
    return {name: round(reference[name] * ratio, 6) for name in missing}


def table(old: Mapping[str, Mapping[str, Prices]], newer: Prices) -> dict[str, Any]:
    """Return the shipped document: sorted types, and by region arrays parallel to them (null = no price)."""
    home_old = old["onDemand"][HOME]
    on_demand, spot, estimated = {}, {}, {}
    for region in sorted(filter(FULL_REGION.fullmatch, old["onDemand"])):
        own = {**old["onDemand"][region], **(newer if region == HOME else {})}
        guessed = complete(own, newer, home_old, offered_types(region))
        on_demand[region] = {**own, **guessed}
        estimated[region] = sorted(guessed)
        own_spot = old["spot"].get(region, {})
        spot_ratio = median_ratio(own_spot, on_demand[region])
        spot[region] = {
            name: own_spot.get(name, round(price * spot_ratio, 6))
            for name, price in on_demand[region].items()
        }
    types = sorted({name for prices in on_demand.values() for name in prices})
    return {
        "dated": {"onDemand": "2025-05", HOME: "2026-07", "spot": "2025-05"},
        "types": types,
        "regions": {
            region: {
                "onDemand": [on_demand[region].get(name) for name in types],
                "spot": [spot[region].get(name) for name in types],
                "estimated": estimated[region],
            }
            for region in sorted(on_demand)
        },
    }


def main(arguments: Sequence[str]) -> int:
    """Write `prices.json.gz` next to this file; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m framework.data.generate_prices FOLDER\n")
        return 2
    folder = Path(arguments[0])
    old = json.loads((folder / "prices-2025-05.json").read_text())
    newer = json.loads((folder / "prices-us-east-1-2026-07.json").read_text())
    document = json.dumps(table(old, newer["onDemand"][HOME]), separators=(",", ":")).encode()
    target = Path(__file__).with_name("prices.json.gz")
    target.write_bytes(gzip.compress(document, 9, mtime=0))
    sys.stdout.write(f"{target.name}: {target.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
