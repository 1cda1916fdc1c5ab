"""The AWS provider: everything between a NodeClaim and a running EC2 instance (spec aws/).

`charpente run` fills `AwsSettings`, calls `build` and runs the controllers it returns; the rest of the
core sees only the `controller.cloud.Provider` protocol.
"""

from __future__ import annotations

from controller.cloud.aws.building import AwsOperator, Surroundings, build
from controller.cloud.aws.provider import AwsProvider
from controller.cloud.aws.settings import AwsSettings

__all__ = ["AwsOperator", "AwsProvider", "AwsSettings", "Surroundings", "build"]
