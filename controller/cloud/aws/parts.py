"""The provider's parts, made once by `build` and shared by the provider and its reconcilers."""

from __future__ import annotations

import attrs

from controller.cloud.aws.catalogue import Catalogue
from controller.cloud.aws.clusterfacts import ClusterFacts
from controller.cloud.aws.gateway import Aws
from controller.cloud.aws.images import Images
from controller.cloud.aws.instances import Instances
from controller.cloud.aws.instancetypes import InstanceTypes
from controller.cloud.aws.launcher import Launcher
from controller.cloud.aws.prices import Prices
from controller.cloud.aws.profiles import Profiles
from controller.cloud.aws.selectors import Selectors
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.unavailable import UnavailableOfferings

__all__ = ["Parts"]


@attrs.frozen(kw_only=True, eq=False)
class Parts:
    """Everything with state in the provider."""

    settings: AwsSettings
    aws: Aws
    cluster: ClusterFacts
    catalogue: Catalogue
    prices: Prices
    unavailable: UnavailableOfferings
    types: InstanceTypes
    launcher: Launcher
    instances: Instances
    images: Images
    selectors: Selectors
    profiles: Profiles
