"""What the kubelet of an EKS image makes of a machine: capacity, allocatable, and the Node it registers.

Pure functions of plain values, written from the kubelet's and nodeadm's documentation and independent of the
controller's own arithmetic, so that the two can disagree and a test can notice.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from framework.api import labels
from framework.api.quantity import parse_quantity
from sandbox.kubernetes.api import Object
from sandbox.nodes.bootstrap import Bootstrap, KubeletSettings
from sandbox.nodes.machine_shape import MachineShape

__all__ = ["HEARTBEAT_LABEL", "HEARTBEAT_ON", "Host", "allocatable", "capacity", "node_object"]

HEARTBEAT_LABEL = "sandbox.charpente.dev/heartbeat"
"""Nodes with this label are kept alive by kwok; taking it off is how a kubelet dies here."""
HEARTBEAT_ON = "on"

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
CPU_BANDS = ((1, 600), (2, 100), (4, 50))
"""nodeadm's reserve: up to so many cores, ten-thousandths of each core; 25 beyond the last."""
CPU_BEYOND = 25
RESERVED_MIB, RESERVED_MIB_PER_POD = 255, 11
RESERVED_STORAGE = GIB
EVICTION_DEFAULTS = {"memory.available": "100Mi", "nodefs.available": "10%"}


@attrs.frozen(kw_only=True)
class Host:
    """The running instance under a kubelet."""

    instance_id: str
    name: str
    """The node's name: the instance's private DNS name."""
    address: str
    zone: str
    zone_id: str
    region: str
    image_id: str
    storage_bytes: int
    """Size of the root volume, or of the striped local disks."""
    kubernetes_version: str


def capacity(shape: MachineShape, settings: KubeletSettings, storage_bytes: int) -> dict[str, int]:
    """Return all there is: cpu in milli-cores, memory and storage in bytes, pods and devices as counts."""
    pods = settings.max_pods if settings.max_pods is not None else shape.network_pods
    if settings.pods_per_core:
        pods = min(pods, settings.pods_per_core * shape.cpus)
    return {
        "cpu": shape.cpus * 1000,
        "memory": shape.memory_kib * KIB,
        "ephemeral-storage": storage_bytes,
        "pods": pods,
        **shape.devices,
    }


def allocatable(total: Mapping[str, int], shape: MachineShape, settings: KubeletSettings) -> dict[str, int]:
    """Return what pods may use: capacity less kube, system and eviction reserve, never below zero."""
    reserve_pods = total["pods"] if settings.reserves_by_max_pods else shape.network_pods
    reserved = {
        "cpu": reserved_cpu_milli(shape.cpus),
        "memory": (RESERVED_MIB + RESERVED_MIB_PER_POD * reserve_pods) * MIB,
        "ephemeral-storage": RESERVED_STORAGE,
    }
    reserved |= {name: parse_quantity(text).units(name) for name, text in settings.kube_reserved.items()}
    for name, text in settings.system_reserved.items():
        reserved[name] = reserved.get(name, 0) + parse_quantity(text).units(name)
    eviction = {**EVICTION_DEFAULTS, **settings.eviction_hard}
    for signal, name in (("memory.available", "memory"), ("nodefs.available", "ephemeral-storage")):
        reserved[name] += _threshold(eviction[signal], total[name])
    return {name: max(amount - reserved.get(name, 0), 0) for name, amount in total.items()}


def reserved_cpu_milli(cpus: int) -> int:
    """Return nodeadm's reserve for that many cores: 6 % of the first, 1 %, 0.5 % of two more, 0.25 % of the
    rest.
    """
    reserve, done = 0, 0
    for end, share in (*CPU_BANDS, (cpus, CPU_BEYOND)):
        upto = min(cpus, end)
        if upto > done:
            reserve += (upto - done) * 1000 * share // 10_000
            done = upto
    return reserve


def node_object(host: Host, shape: MachineShape, bootstrap: Bootstrap) -> Object:
    """Return the Node that the kubelet posts when it registers; it is not ready yet."""
    total = capacity(shape, bootstrap.kubelet, host.storage_bytes)
    well_known = {
        labels.HOSTNAME: host.name,
        labels.ARCH: shape.architecture,
        labels.OS: "linux",
        labels.INSTANCE_TYPE: shape.instance_type,
        labels.ZONE: host.zone,
        labels.REGION: host.region,
        labels.ZONE_ID: host.zone_id,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": host.name,
            "labels": {**bootstrap.labels, **well_known, HEARTBEAT_LABEL: HEARTBEAT_ON},
        },
        "spec": {
            "providerID": f"aws:///{host.zone}/{host.instance_id}",
            "taints": [_taint(t.key, t.value, t.effect) for t in bootstrap.taints],
        },
        "status": {
            "capacity": _wire(total),
            "allocatable": _wire(allocatable(total, shape, bootstrap.kubelet)),
            "addresses": [
                {"type": "InternalIP", "address": host.address},
                {"type": "InternalDNS", "address": host.name},
                {"type": "Hostname", "address": host.name},
            ],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "KubeletNotReady",
                    "message": "container runtime network not ready: cni plugin not initialized",
                }
            ],
            "nodeInfo": {
                "architecture": shape.architecture,
                "operatingSystem": "linux",
                "osImage": host.image_id,
                "kernelVersion": "sandbox",
                "containerRuntimeVersion": "kwok://0.7.0",
                "kubeletVersion": host.kubernetes_version,
                "kubeProxyVersion": host.kubernetes_version,
                "machineID": host.instance_id,
                "systemUUID": host.instance_id,
                "bootID": host.instance_id,
            },
        },
    }


def _taint(key: str, value: str, effect: str) -> dict[str, str]:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _threshold(text: str, total: int) -> int:
    if text.endswith("%"):
        # The kubelet keeps percentages as float32 of 0..1; whole thousandths are exact enough and repeatable.
        return total * round(float(text[:-1]) * 1000) // 100_000
    return parse_quantity(text).value()


def _wire(amounts: Mapping[str, int]) -> dict[str, str]:
    def text(name: str, amount: int) -> str:
        if name == "cpu":
            return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"
        if name == "memory":
            return f"{amount // KIB}Ki"
        return str(amount)

    return {name: text(name, amount) for name, amount in sorted(amounts.items())}
