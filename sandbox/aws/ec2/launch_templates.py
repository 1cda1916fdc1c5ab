"""Launch templates: paged, with EC2's not-found codes, and with their own tags kept off the launch data.

moto adds the template's tags to what it launches, truncates long lists without a token, and answers an
unknown template with MissingParameter.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.utils import parse_user_data

from sandbox.aws.ec2.actions import Ec2Actions, Fields
from sandbox.aws.world import ACCOUNT

__all__ = ["LaunchTemplateActions"]

PAGE = 200
USER_DATA_LIMIT = 16384
"""EC2's limit in bytes, decoded."""
CREATOR = f"arn:aws:iam::{ACCOUNT}:root"


def _checked_user_data(encoded: str | None) -> None:
    if not encoded:
        return
    try:
        size = len(base64.b64decode(encoded, validate=True))
    except binascii.Error as exc:
        raise EC2ClientError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from exc
    if size > USER_DATA_LIMIT:
        raise EC2ClientError("InvalidParameterValue", f"User data is limited to {USER_DATA_LIMIT} bytes")


_FIELDS: Fields[Any] = {
    "create-time": lambda template: template.create_time.isoformat(),
    "launch-template-name": lambda template: template.name,
}


class LaunchTemplateActions(Ec2Actions):
    """Create, describe and delete launch templates."""

    def create_launch_template(self) -> str:
        """Create a template with version 1; tags of the request go on the template only."""
        data = dict(self.parameter("LaunchTemplateData") or {})
        _checked_user_data(data.get("UserData"))
        name = self.parameter("LaunchTemplateName")
        if name in self.ec2_backend.launch_template_name_to_ids:
            raise EC2ClientError(
                "InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use."
            )
        tags = self._parse_tag_specification()
        unknown = sorted(tags.keys() - {"launch-template"})
        if unknown:
            raise EC2ClientError(
                "InvalidParameter",
                f"'{unknown[0]}' is not a valid taggable resource type for this operation.",
            )
        self.error_on_dryrun()
        template = self.ec2_backend.create_launch_template(
            name, self.parameter("VersionDescription"), self._stored(data), tags
        )
        template.create_time = self.world.utc_naive()
        return self.answer("CreateLaunchTemplate", {"LaunchTemplate": self._template_shown(template)})

    @staticmethod
    def _stored(data: Mapping[str, Any]) -> dict[str, Any]:
        stored = dict(data)
        if stored.get("UserData"):
            stored["UserData"] = parse_user_data(stored["UserData"])
        return stored

    def create_launch_template_version(self) -> Any:
        """Add a version. Raises the not-found codes before moto would fail."""
        self._find_template(self.parameter("LaunchTemplateId"), self.parameter("LaunchTemplateName"))
        _checked_user_data((self.parameter("LaunchTemplateData") or {}).get("UserData"))
        return super().create_launch_template_version()

    def delete_launch_template(self) -> str:
        """Delete a template by id or name, with its tags."""
        template = self._find_template(
            self.parameter("LaunchTemplateId"), self.parameter("LaunchTemplateName")
        )
        self.error_on_dryrun()
        answer = {"LaunchTemplate": self._template_shown(template)}
        self.ec2_backend.delete_launch_template(None, template.id)
        self.ec2_backend.tags.pop(template.id, None)
        return self.answer("DeleteLaunchTemplate", answer)

    def describe_launch_templates(self) -> str:
        """Return templates by name, id or filters, in pages of at most 200."""
        names, ids = self.parameter("LaunchTemplateNames") or [], self.parameter("LaunchTemplateIds") or []
        self.error_on_dryrun()
        if names or ids:
            found = [self._find_template(i, None) for i in ids] + [
                self._find_template(None, n) for n in names
            ]
        else:
            found = list(self.ec2_backend.launch_templates.values())
        selected = self.request_filters().select(found, _FIELDS, self.tags_by_id)
        page, following = self.page(selected, PAGE)
        answer = {"LaunchTemplates": [self._template_shown(t) for t in page], "NextToken": following}
        return self.answer("DescribeLaunchTemplates", answer)

    def _find_template(self, template_id: str | None, name: str | None) -> Any:
        backend = self.ec2_backend
        if not template_id and not name:
            raise EC2ClientError(
                "MissingParameter", "The request must contain a launch template ID or a launch template name"
            )
        if template_id and template_id not in backend.launch_templates:
            raise EC2ClientError(
                "InvalidLaunchTemplateId.NotFound",
                f"The specified launch template, with template ID {template_id}, does not exist.",
            )
        if not template_id and name not in backend.launch_template_name_to_ids:
            raise EC2ClientError(
                "InvalidLaunchTemplateName.NotFoundException",
                f"The specified launch template, with template name {name}, does not exist.",
            )
        return backend.launch_templates[template_id or backend.launch_template_name_to_ids[name]]

    def _template_shown(self, template: Any) -> dict[str, Any]:
        return {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "CreateTime": template.create_time,
            "CreatedBy": CREATOR,
            "DefaultVersionNumber": template.default_version_number,
            "LatestVersionNumber": template.latest_version_number,
            "Tags": self.tag_list(template.id),
        }
