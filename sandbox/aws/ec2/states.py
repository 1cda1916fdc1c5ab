"""Instance states over time: what happens when a transition is due, and the event each one raises."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.instances import InstanceState, StateReason

from sandbox.aws import events
from sandbox.aws.ec2 import profiles
from sandbox.aws.world import World

__all__ = ["begin_stop", "begin_termination", "schedule_start", "set_state"]

_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
USER_SHUTDOWN = "Client.UserInitiatedShutdown"
SPOT_TERMINATION = "Server.SpotInstanceTermination"


def set_state(world: World, instance: Any, name: str) -> None:
    """Move an instance to a state and raise EC2's state-change notification."""
    instance._state = InstanceState(name, _CODES[name])
    record = world.instances.get(instance.id)
    if record:
        record.version += 1
    events.state_changed(world, instance.region_name, instance.id, name)


def schedule_start(world: World, instance: Any) -> None:
    """Let a pending instance run after the boot time, unless it is ended first."""
    events.state_changed(world, instance.region_name, instance.id, "pending")

    def start() -> None:
        if instance.state == "pending":
            set_state(world, instance, "running")

    world.lifecycle.schedule(world.now() + world.timings.boot, start)


def begin_termination(world: World, instance: Any, reason: str = USER_SHUTDOWN) -> str:
    """Start ending an instance; return its previous state. An instance that is ending stays as it is."""
    previous = str(instance.state)
    if previous in ("shutting-down", "terminated"):
        return previous
    instance.state_reason = StateReason(f"{reason}: instance ended", reason)
    instance._reason = f"User initiated ({world.now():%Y-%m-%d %H:%M:%S} GMT)"
    set_state(world, instance, "shutting-down")
    world.lifecycle.schedule(
        world.now() + world.timings.shutdown, lambda: _finish_termination(world, instance)
    )
    return previous


def begin_stop(world: World, instance: Any) -> str:
    """Start stopping an instance; return its previous state."""
    previous = str(instance.state)
    if previous not in ("pending", "running"):
        return previous
    set_state(world, instance, "stopping")

    def stop() -> None:
        if instance.state == "stopping":
            set_state(world, instance, "stopped")

    world.lifecycle.schedule(world.now() + world.timings.shutdown, stop)
    return previous


def _finish_termination(world: World, instance: Any) -> None:
    backend = instance.ec2_backend
    _release_interfaces(backend, instance)
    _release_volumes(backend, instance)
    profiles.dissociate(instance)
    record = world.instances.get(instance.id)
    reservation = world.capacity_reservations.get(record.capacity_reservation_id or "") if record else None
    if reservation:
        reservation.used_by.discard(instance.id)
    set_state(world, instance, "terminated")
    world.lifecycle.schedule(world.now() + world.timings.purge, lambda: _purge(world, instance))


def _release_interfaces(backend: Any, instance: Any) -> None:
    """Delete the interfaces made with the instance and give their addresses back; detach the others."""
    for interface in list(instance.nics.values()):
        if interface.delete_on_termination:
            backend.enis.pop(interface.id, None)
            backend.tags.pop(interface.id, None)
            for address in interface.private_ip_addresses:
                interface.subnet.del_subnet_ip(address["PrivateIpAddress"])
        else:
            instance.detach_eni(interface)
    instance.nics = {}
    instance._private_ips.clear()


def _release_volumes(backend: Any, instance: Any) -> None:
    for device in list(instance.block_device_mapping.values()):
        volume = backend.volumes.get(device.volume_id)
        if volume is None:
            continue
        volume.attachment = None
        if device.delete_on_termination:
            backend.volumes.pop(device.volume_id)
            backend.tags.pop(device.volume_id, None)
    instance.block_device_mapping.clear()


def _purge(world: World, instance: Any) -> None:
    backend = instance.ec2_backend
    for reservation in list(backend.reservations.values()):
        if instance in reservation.instances:
            reservation.instances.remove(instance)
            if not reservation.instances:
                del backend.reservations[reservation.id]
    backend.tags.pop(instance.id, None)
    world.instances.pop(instance.id, None)
