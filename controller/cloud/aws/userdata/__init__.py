"""User data: what a machine is told at boot, per image family (spec aws/launch §9).

`render` is the only door, called by `controller.cloud.aws.launchtemplates`. Pure: a `Bootstrap` in,
text out, equal bytes for equal input.
"""

from __future__ import annotations

import base64

from controller.cloud.aws.userdata.bootstrap import Bootstrap, KubeletArgs
from controller.cloud.aws.userdata.bottlerocket import dropped_settings, render_bottlerocket
from controller.cloud.aws.userdata.linux import render_al2, render_al2023
from controller.cloud.aws.userdata.windows import render_windows
from framework.api.ec2nodeclass import AmiFamily

__all__ = ["Bootstrap", "KubeletArgs", "dropped_settings", "encode", "render"]


def render(family: AmiFamily, bootstrap: Bootstrap) -> str:
    """Return the user data as text; empty for a Custom image without any.

    Raises: ValueError when the user's own part cannot be read.
    """
    match family:
        case AmiFamily.AL2:
            return render_al2(bootstrap)
        case AmiFamily.AL2023:
            return render_al2023(bootstrap)
        case AmiFamily.BOTTLEROCKET:
            return render_bottlerocket(bootstrap)
        case AmiFamily.WINDOWS2019 | AmiFamily.WINDOWS2022 | AmiFamily.WINDOWS2025:
            return render_windows(bootstrap)
        case AmiFamily.CUSTOM:
            return bootstrap.custom or ""


def encode(text: str) -> str:
    """Return user data as EC2 takes it, in base64."""
    return base64.b64encode(text.encode()).decode()
