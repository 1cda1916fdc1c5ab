"""Putting the parts together: an empty account and the application in front of moto.

Imported by the server only when it starts: importing moto's services takes a second.
"""

from __future__ import annotations

from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from controller.clock import Clock, SystemClock
from sandbox.aws import iam
from sandbox.aws.account import empty
from sandbox.aws.application import Application
from sandbox.aws.ec2 import service as ec2
from sandbox.aws.world import World

__all__ = ["application", "new_world"]


def new_world(region: str, clock: Clock | None = None) -> World:
    """Return an empty account; moto's state of this process is thrown away."""
    world = World(now=(clock or SystemClock()).now, region=region)
    empty(world)
    return world


def application(world: World, clock: Clock | None = None) -> Any:
    """Return the WSGI application. Replaces moto's actions: one world a process."""
    ec2.install(world)
    iam.install()
    return Application(world, DomainDispatcherApplication(create_backend_app), clock or SystemClock())
