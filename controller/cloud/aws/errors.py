"""What AWS may answer instead of yes, as exceptions that say what the caller should do.

Raised by `controller.cloud.aws.gateway` only; every other module of the provider catches these and
never a botocore error. Owns the tables of error codes (spec aws/launch §8).

    CloudError
    └── AwsError                 code and message in the text, never guessed
        ├── AwsNotFound          the object is gone: go on
        ├── AwsAlreadyExists     somebody made it first: go on
        ├── AwsDenied            the user must grant an action
        ├── AwsThrottled         retry later
        └── AwsUnavailable       retry; whether the call took effect is not known
"""

from __future__ import annotations

from typing import Final

from controller.cloud.provider import CloudError

__all__ = [
    "DRY_RUN_OK",
    "AwsAlreadyExists",
    "AwsDenied",
    "AwsError",
    "AwsNotFound",
    "AwsThrottled",
    "AwsUnavailable",
    "classify",
]

DRY_RUN_OK: Final = "DryRunOperation"
"""The code with which EC2 says that the request would have succeeded."""

_NOT_FOUND: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidCapacityReservationId.NotFound",
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "NoSuchEntity",
        "ParameterNotFound",
        "QueueDoesNotExist",
    }
)
_ALREADY_EXISTS: Final = frozenset(
    {"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"}
)
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "AuthFailure", "UnauthorizedOperation"})
_THROTTLED: Final = frozenset(
    {
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_UNAVAILABLE: Final = frozenset({"InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable"})


class AwsError(CloudError):
    """A call that AWS refused."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        """Keep the operation (`ec2:CreateFleet`), the service's code and its message."""
        super().__init__(f"{operation}: {code}: {message}")
        self.operation = operation
        self.code = code
        self.message = message


class AwsNotFound(AwsError):
    """The object named in the call does not exist."""


class AwsAlreadyExists(AwsError):
    """An object of that name exists already."""


class AwsDenied(AwsError):
    """The controller's identity may not make this call; `operation` names it."""


class AwsThrottled(AwsError):
    """Too many calls, after the retry budget."""


class AwsUnavailable(AwsError):
    """The service failed or did not answer; the call may or may not have taken effect."""


def classify(operation: str, code: str, message: str, status: int) -> AwsError:
    """Return the error for a service's code and HTTP status; an unknown code stays in the text."""
    table: tuple[tuple[frozenset[str], type[AwsError]], ...] = (
        (_NOT_FOUND, AwsNotFound),
        (_ALREADY_EXISTS, AwsAlreadyExists),
        (_DENIED, AwsDenied),
        (_THROTTLED, AwsThrottled),
        (_UNAVAILABLE, AwsUnavailable),
    )
    for codes, kind in table:
        if code in codes:
            return kind(operation, code, message)
    if status >= 500:
        return AwsUnavailable(operation, code, message)
    return AwsError(operation, code, message)
