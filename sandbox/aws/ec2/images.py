"""Images: registered with their architecture, deprecated, filtered and paged.

moto drops Architecture and RootDeviceName on RegisterImage, so that the choice of an image by architecture
could not be tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.amis import Ami

from sandbox.aws.ec2.actions import Ec2Actions, Fields, matcher
from sandbox.aws.image_catalogue import EksImage, catalogue
from sandbox.aws.world import ACCOUNT, World

__all__ = ["ImageActions", "load_images"]

PAGE = 1000


def load_images(world: World, backend: Any, region: str) -> None:
    """Put the EKS images of a region into moto's backend."""
    for image in catalogue(region):
        backend.amis[image.id] = _ami(backend, image)
        world.image_deprecations[(region, image.id)] = image.deprecated


def _ami(backend: Any, image: EksImage) -> Any:
    return Ami(
        backend,
        image.id,
        name=image.name,
        description=image.description,
        owner_id=image.owner_id,
        owner_alias="amazon",
        public=True,
        virtualization_type="hvm",
        architecture=image.architecture,
        platform=image.platform,
        creation_date=image.created.replace(tzinfo=None),
        hypervisor="xen",
        root_device_type="ebs",
        root_device_name=image.root_device,
        image_location=f"amazon/{image.name}",
        region_name=f"{backend.region_name}a",
        boot_mode="uefi-preferred",
    )


_FIELDS: Fields[Any] = {
    "architecture": lambda i: i.architecture,
    "creation-date": lambda i: i.creation_date.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    "description": lambda i: i.description,
    "image-id": lambda i: i.id,
    "image-type": lambda i: i.image_type,
    "is-public": lambda i: bool(i.is_public),
    "name": lambda i: i.name,
    "owner-alias": lambda i: i.owner_alias,
    "owner-id": lambda i: i.owner_id,
    "platform": lambda i: i.platform,
    "root-device-type": lambda i: i.root_device_type,
    "state": lambda i: i.state,
    "virtualization-type": lambda i: i.virtualization_type,
}


class ImageActions(Ec2Actions):
    """Register, describe and deprecate images."""

    def register_image(self) -> Any:
        """Register an image and keep its architecture and root device."""
        answer = super().register_image()
        result = answer.result
        image_id = result["ImageId"] if isinstance(result, Mapping) else result.id
        image = self.ec2_backend.amis[image_id]
        image.architecture = self.parameter("Architecture") or "i386"
        image.root_device_name = self.parameter("RootDeviceName") or image.root_device_name
        image.root_device_type = "ebs"
        image.virtualization_type = self.parameter("VirtualizationType") or "hvm"
        image.creation_date = self.world.utc_naive()
        return answer

    def deregister_image(self) -> Any:
        """Deregister an image and forget its deprecation."""
        answer = super().deregister_image()
        self.world.image_deprecations.pop((self.region, self.parameter("ImageId")), None)
        return answer

    def enable_image_deprecation(self) -> ActionResult:
        """Note the instant from which an image counts as deprecated."""
        image_id, at = self._image_id(), self.parameter("DeprecateAt")
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        self.error_on_dryrun()
        self.world.image_deprecations[(self.region, image_id)] = at if at.tzinfo else at.astimezone()
        return ActionResult({"Return": True})

    def disable_image_deprecation(self) -> ActionResult:
        """Forget an image's deprecation."""
        self.world.image_deprecations.pop((self.region, self._image_id()), None)
        return ActionResult({"Return": True})

    def _image_id(self) -> str:
        image_id = str(self.parameter("ImageId"))
        if image_id not in self.ec2_backend.amis:
            raise EC2ClientError("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")
        return image_id

    def describe_images(self) -> str:
        """Return images by id, owner and filters, paged; deprecated ones of others only when asked for."""
        self.error_on_dryrun()
        ids = self.parameter("ImageIds") or []
        found = self._images_by_id(ids) if ids else list(self.ec2_backend.amis.values())
        owners = [ACCOUNT if o == "self" else o for o in self.parameter("Owners") or []]
        if owners:
            tests = [matcher(owner) for owner in owners]
            found = [
                i for i in found if any(t(i.owner_id) or (i.owner_alias and t(i.owner_alias)) for t in tests)
            ]
        if not ids and not self.parameter("IncludeDeprecated"):
            found = [i for i in found if i.owner_id == ACCOUNT or not self._is_deprecated(i.id)]
        selected = self.request_filters().select(found, _FIELDS, self.tags_by_id)
        page, following = self.page(selected, PAGE)
        return self.answer(
            "DescribeImages", {"Images": [self._image_shown(i) for i in page], "NextToken": following}
        )

    def _images_by_id(self, ids: list[str]) -> list[Any]:
        malformed = [i for i in ids if not i.startswith("ami-")]
        if malformed:
            raise EC2ClientError(
                "InvalidAMIID.Malformed", f'Invalid id: "{malformed[0]}" (expecting "ami-...")'
            )
        missing = [i for i in ids if i not in self.ec2_backend.amis]
        if missing:
            raise EC2ClientError(
                "InvalidAMIID.NotFound", f"The image id '[{', '.join(missing)}]' does not exist"
            )
        return [self.ec2_backend.amis[i] for i in ids]

    def _is_deprecated(self, image_id: str) -> bool:
        at = self.world.image_deprecations.get((self.region, image_id))
        return at is not None and at <= self.world.now()

    def _image_shown(self, image: Any) -> dict[str, Any]:
        deprecation = self.world.image_deprecations.get((self.region, image.id))
        windows = image.platform == "windows"
        return {
            "ImageId": image.id,
            "ImageLocation": image.image_location or f"{image.owner_id}/{image.name}",
            "State": image.state,
            "OwnerId": image.owner_id,
            "CreationDate": image.creation_date.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "Public": image.is_public,
            "Architecture": image.architecture,
            "ImageType": image.image_type,
            "Platform": "windows" if windows else None,
            "PlatformDetails": "Windows" if windows else "Linux/UNIX",
            "RootDeviceType": "ebs",
            "RootDeviceName": image.root_device_name,
            "BlockDeviceMappings": image.block_device_mappings,
            "Name": image.name,
            "Description": image.description,
            "ImageOwnerAlias": image.owner_alias,
            "Hypervisor": "xen",
            "VirtualizationType": image.virtualization_type,
            "EnaSupport": True,
            "Tags": self.tag_list(image.id),
            "DeprecationTime": deprecation.strftime("%Y-%m-%dT%H:%M:%S.000Z") if deprecation else None,
        }
