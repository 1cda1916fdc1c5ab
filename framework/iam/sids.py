"""The statements of the controller's policies, by their Sid.

Called by the call table and by the grants. Owns the closed set of statement ids of
spec aws/iam-and-bootstrap section 2; never says what a statement contains.
"""

from __future__ import annotations

from enum import StrEnum


class Sid(StrEnum):
    """Id of one policy statement; the value is the text in the document."""

    SCOPED_INSTANCE_ACCESS = "AllowScopedEC2InstanceAccessActions"
    SCOPED_LAUNCH_TEMPLATE_ACCESS = "AllowScopedEC2LaunchTemplateAccessActions"
    SCOPED_INSTANCE_ACTIONS_WITH_TAGS = "AllowScopedEC2InstanceActionsWithTags"
    SCOPED_RESOURCE_CREATION_TAGGING = "AllowScopedResourceCreationTagging"
    SCOPED_RESOURCE_TAGGING = "AllowScopedResourceTagging"
    SCOPED_DELETION = "AllowScopedDeletion"
    PASSING_INSTANCE_ROLE = "AllowPassingInstanceRole"
    SCOPED_INSTANCE_PROFILE_CREATION = "AllowScopedInstanceProfileCreationActions"
    SCOPED_INSTANCE_PROFILE_TAGGING = "AllowScopedInstanceProfileTagActions"
    SCOPED_INSTANCE_PROFILE_ACTIONS = "AllowScopedInstanceProfileActions"
    ENDPOINT_DISCOVERY = "AllowAPIServerEndpointDiscovery"
    INTERRUPTION_QUEUE_ACTIONS = "AllowInterruptionQueueActions"
    REGIONAL_READ = "AllowRegionalReadActions"
    SSM_READ = "AllowSSMReadActions"
    PRICING_READ = "AllowPricingReadActions"
    INSTANCE_PROFILE_LIST = "AllowUnscopedInstanceProfileListAction"
    INSTANCE_PROFILE_READ = "AllowInstanceProfileReadActions"
