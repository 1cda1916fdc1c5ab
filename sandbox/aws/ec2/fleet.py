"""CreateFleet of type instant: pools, allocation strategies, and an `Errors` item for each pool that fails.

A pool is one override of one launch template. Pools are tried in the strategy's order until the target is
met; a pool without room gives what it has, reports its error, and the next one is tried (aws/launch §6, §8).
moto's own CreateFleet takes the first override whatever was asked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.utils import convert_tag_spec, random_fleet_id

from sandbox.aws.ec2.actions import Ec2Actions
from sandbox.aws.ec2.launching import Launch, check, free_addresses, launch, merged
from sandbox.aws.errors import AwsError, NotModelled
from sandbox.aws.market import price
from sandbox.aws.world import World

__all__ = ["FleetActions"]

MOST_INSTANCES = 1000
"""EC2's limit of one instant fleet as this sandbox has it (the batcher's largest call)."""

_BY_PRICE = ("lowest-price", "price-capacity-optimized", "diversified")
_AS_GIVEN = ("capacity-optimized",)
_BY_PRIORITY = ("prioritized", "capacity-optimized-prioritized")


@attrs.frozen(kw_only=True)
class Pool:
    """One override of a launch template, with what it would cost."""

    place: int
    """Position in the request."""
    launch: Launch
    price: float
    """USD per hour; infinite when no price is known."""
    priority: float
    max_price: float | None
    echo: Mapping[str, Any]
    """LaunchTemplateAndOverrides of the answer."""


def ordered(pools: Sequence[Pool], strategy: str) -> list[Pool]:
    """Return the pools in the order the strategy tries them. Depth of capacity is not modelled, so
    price-capacity-optimized is by price. Raises AwsError for an unknown strategy."""
    orders: dict[str, Callable[[Pool], tuple[float, ...]]] = {
        **dict.fromkeys(_BY_PRICE, lambda p: (p.price, p.place)),
        **dict.fromkeys(_BY_PRIORITY, lambda p: (p.priority, p.price, p.place)),
        **dict.fromkeys(_AS_GIVEN, lambda p: (p.place,)),
    }
    if strategy not in orders:
        raise AwsError("InvalidParameterValue", f"'{strategy}' is not a valid AllocationStrategy.")
    return sorted(pools, key=orders[strategy])


def fill(world: World, backend: Any, pools: Sequence[Pool], target: int) -> dict[str, Any]:
    """Launch up to `target` instances from the pools in order; return Instances and Errors."""
    groups: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    missing = target
    for pool in pools:
        if missing <= 0:
            break
        try:
            made = _from_pool(world, backend, pool, missing)
            if made:
                groups.append(_group(pool, made))
                missing -= len(made)
            if missing > 0:
                raise _shortage(world, pool)
        except AwsError as error:
            errors.append(_error(pool, error))
    return {"Errors": errors, "Instances": groups}


def _from_pool(world: World, backend: Any, pool: Pool, wanted: int) -> list[Any]:
    reservation = check(world, backend, pool.launch)
    if pool.max_price is not None and pool.launch.capacity_type == "spot" and pool.max_price < pool.price:
        raise AwsError(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {pool.max_price} is lower than the minimum required Spot request "
            f"fulfillment price of {pool.price}.",
        )
    room = wanted
    shortage = _find_shortage(world, pool)
    if shortage is not None:
        room = min(room, shortage.remaining)
    if reservation is not None and _is_bound(pool.launch):
        room = min(room, reservation.available)
    if pool.launch.subnet is not None:
        addresses = free_addresses(pool.launch.subnet) // len(pool.launch.interfaces)
        room = min(room, addresses) if addresses else room
    if room <= 0:
        return []
    made = launch(world, backend, pool.launch, room)
    if shortage is not None:
        world.shortages.take(shortage, len(made))
    return made


def _is_bound(wanted: Launch) -> bool:
    """Whether the launch may only use its reservation, not ordinary capacity beyond it."""
    specification = wanted.data.get("CapacityReservationSpecification") or {}
    return bool(
        specification.get("CapacityReservationTarget")
        or specification.get("CapacityReservationPreference") == "capacity-reservations-only"
    )


def _find_shortage(world: World, pool: Pool) -> Any:
    return world.shortages.find(pool.launch.instance_type, pool.launch.zone, pool.launch.capacity_type)


def _shortage(world: World, pool: Pool) -> AwsError:
    """Return the error of a pool that gave less than was asked."""
    rule = _find_shortage(world, pool)
    if rule is not None:
        return AwsError(rule.code, rule.explained(pool.launch.instance_type, pool.launch.zone))
    if _is_bound(pool.launch):
        return AwsError("ReservationCapacityExceeded", "The capacity reservation has no capacity left.")
    return AwsError(
        "InsufficientFreeAddressesInSubnet",
        f"There are not enough free addresses in subnet '{pool.launch.subnet.id}' to satisfy the requested "
        "number of instances.",
    )


def _group(pool: Pool, made: Sequence[Any]) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": pool.echo,
        "Lifecycle": "spot" if pool.launch.capacity_type == "spot" else "on-demand",
        "InstanceIds": [instance.id for instance in made],
        "InstanceType": pool.launch.instance_type,
    }


def _error(pool: Pool, error: AwsError) -> dict[str, Any]:
    fleet_code = {"Unsupported": "InvalidFleetConfiguration"}.get(error.code, error.code)
    if error.code == "InvalidParameterValue" and "architecture" in error.message:
        fleet_code = "InvalidFleetConfiguration"
    return {
        "LaunchTemplateAndOverrides": pool.echo,
        "Lifecycle": "spot" if pool.launch.capacity_type == "spot" else "on-demand",
        "ErrorCode": fleet_code,
        "ErrorMessage": error.message,
    }


class FleetActions(Ec2Actions):
    """CreateFleet."""

    def create_fleet(self) -> str:
        """Launch an instant fleet; the same ClientToken with the same request answers the same fleet."""
        if self.parameter("Type", "maintain") != "instant":
            raise NotModelled(f"CreateFleet Type={self.parameter('Type', 'maintain')} (only instant)")
        self.error_on_dryrun()
        answer = self.once("CreateFleet", self.parameter("ClientToken"), self._create)
        return self.answer("CreateFleet", answer)

    def once(self, operation: str, token: str | None, make: Callable[[], Any]) -> Any:
        """Return the answer given before for a client token, else make it.

        Raises IdempotentParameterMismatch when the token came with another request.
        """
        if not token:
            return make()
        request = json.dumps(self.params, sort_keys=True, default=str)
        key = (self.region, operation, token)
        if key in self.world.answered_tokens:
            asked, answer = self.world.answered_tokens[key]
            if asked != request:
                raise EC2ClientError(
                    "IdempotentParameterMismatch",
                    f"The client token '{token}' was used with other parameters before.",
                )
            return answer
        answer = make()
        self.world.answered_tokens[key] = (request, answer)
        return answer

    def _create(self) -> dict[str, Any]:
        capacity = self.parameter("TargetCapacitySpecification", {})
        target = int(capacity["TotalTargetCapacity"])
        if not 1 <= target <= MOST_INSTANCES:
            raise EC2ClientError(
                "InvalidParameterValue",
                f"TotalTargetCapacity {target} is not between 1 and {MOST_INSTANCES}.",
            )
        capacity_type = capacity.get("DefaultTargetCapacityType") or "on-demand"
        if capacity_type not in ("on-demand", "spot", "capacity-block"):
            raise NotModelled(f"CreateFleet DefaultTargetCapacityType={capacity_type}")
        options = self.parameter("SpotOptions" if capacity_type == "spot" else "OnDemandOptions", {}) or {}
        unknown = sorted(options.keys() - {"AllocationStrategy", "InstanceInterruptionBehavior"})
        if unknown:
            raise NotModelled(f"CreateFleet option {unknown[0]}")
        fleet_id = random_fleet_id()
        pools = ordered(
            self._pools(capacity_type, fleet_id), options.get("AllocationStrategy") or "lowest-price"
        )
        return {"FleetId": fleet_id, **fill(self.world, self.ec2_backend, pools, target)}

    def _pools(self, capacity_type: str, fleet_id: str) -> list[Pool]:
        pools: list[Pool] = []
        for config in self.parameter("LaunchTemplateConfigs", []):
            version = self.template_version(config.get("LaunchTemplateSpecification") or {})
            for override in config.get("Overrides") or [{}]:
                pools.append(self._pool(version, override, capacity_type, fleet_id, len(pools)))
        if not pools:
            raise EC2ClientError(
                "MissingParameter", "The request must contain the parameter LaunchTemplateConfigs"
            )
        return pools

    def template_version(self, specification: Mapping[str, Any]) -> Any:
        """Return moto's launch template version for an id or name and version. Raises NotFound codes."""
        backend = self.ec2_backend
        name, template_id = specification.get("LaunchTemplateName"), specification.get("LaunchTemplateId")
        if not template_id:
            template_id = backend.launch_template_name_to_ids.get(name)
            if template_id is None:
                raise EC2ClientError(
                    "InvalidLaunchTemplateName.NotFoundException",
                    f"The specified launch template, with template name {name}, does not exist.",
                )
        if template_id not in backend.launch_templates:
            raise EC2ClientError(
                "InvalidLaunchTemplateId.NotFound",
                f"The specified launch template, with template ID {template_id}, does not exist.",
            )
        return backend.launch_templates[template_id].get_version(specification.get("Version") or "$Default")

    def _pool(
        self, version: Any, override: Mapping[str, Any], capacity_type: str, fleet_id: str, place: int
    ) -> Pool:
        backend, data = self.ec2_backend, version.data
        subnet = backend.get_subnet(override["SubnetId"]) if override.get("SubnetId") else None
        zone = subnet.availability_zone if subnet else override.get("AvailabilityZone")
        if zone is None:
            zone = f"{self.region}a"
        instance_type = override.get("InstanceType") or data.get("InstanceType") or ""
        specification = {
            "LaunchTemplateId": version.template.id,
            "LaunchTemplateName": version.template.name,
            "Version": str(version.number),
        }
        cost = price(self.region, instance_type, zone, capacity_type)
        return Pool(
            place=place,
            launch=Launch(
                region=self.region,
                instance_type=instance_type,
                image_id=override.get("ImageId") or data.get("ImageId") or "",
                zone=zone,
                subnet=subnet,
                capacity_type=capacity_type,
                data=merged(data, {}),
                tags=launch_tags(data, self.parameter("TagSpecifications", []), version, fleet_id),
            ),
            price=math.inf if cost is None else cost,
            priority=float(override["Priority"]) if override.get("Priority") is not None else math.inf,
            max_price=float(override["MaxPrice"]) if override.get("MaxPrice") else None,
            echo={"LaunchTemplateSpecification": specification, "Overrides": dict(override)},
        )


def launch_tags(
    data: Mapping[str, Any], request: Sequence[Mapping[str, Any]], version: Any, fleet_id: str | None
) -> dict[str, dict[str, str]]:
    """Return tags by resource type: the template's, the request's over them, and EC2's own on instances."""
    tags: dict[str, dict[str, str]] = {}
    for source in (convert_tag_spec(data.get("TagSpecifications") or []), convert_tag_spec(request)):
        for kind, pairs in source.items():
            tags.setdefault(kind, {}).update(pairs)
    own = tags.setdefault("instance", {})
    if version is not None:
        own["aws:ec2launchtemplate:id"] = version.template.id
        own["aws:ec2launchtemplate:version"] = str(version.number)
    if fleet_id:
        own["aws:ec2:fleet-id"] = fleet_id
    return tags
