"""What the API server may refuse, by what the caller should do.

No HTTP status is seen above this package; `from_response` is the one place that translates them::

    KubeError
    ├── NotFound          the object is gone: an ordinary outcome of a delete, else drop the key
    ├── AlreadyExists     somebody created it first: read it
    ├── Conflict          written to an older version: read again, then retry
    ├── Gone              the resource version is too old: list again
    ├── Invalid           the request can never work: fix the object or the program
    ├── Forbidden         a permission is missing: name it to the operator, retry slowly
    ├── TooManyRequests   wait; on an eviction: a PodDisruptionBudget allows no more
    ├── SeveralBudgets    an eviction of a pod that more than one PodDisruptionBudget selects
    └── Unavailable       the server or the way to it is down: retry with back-off
"""

from __future__ import annotations

from typing import Any

from framework.api import CharpenteError

__all__ = [
    "AlreadyExists",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeError",
    "NotFound",
    "SeveralBudgets",
    "TooManyRequests",
    "Unavailable",
    "from_response",
]


class KubeError(CharpenteError):
    """The API server did not do what was asked; `request` names verb and object."""

    def __init__(self, request: str, message: str, *, retry_after: float | None = None) -> None:
        """Keep the request in words, the server's message and the seconds it asks to wait, if any."""
        super().__init__(f"{request}: {message}")
        self.request = request
        self.message = message
        self.retry_after = retry_after


class NotFound(KubeError):
    """The object, or the kind, does not exist."""


class AlreadyExists(KubeError):
    """An object of that name exists."""


class Conflict(KubeError):
    """The object has changed since it was read."""


class Gone(KubeError):
    """The asked resource version is no longer kept."""


class Invalid(KubeError):
    """The server can never accept this request."""


class Forbidden(KubeError):
    """The identity lacks the permission, or could not be proven."""


class TooManyRequests(KubeError):
    """The server, or a disruption budget, asks to come back later."""


class SeveralBudgets(KubeError):
    """More than one disruption budget selects the pod, which the eviction API refuses."""


class Unavailable(KubeError):
    """No usable answer came."""


_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
}


def from_response(
    request: str, status: int, body: dict[str, Any] | None, retry_after: float | None = None
) -> KubeError:
    """Return the error of an answer that is not a success: HTTP status plus the server's `Status` object."""
    message = str((body or {}).get("message") or f"answered {status}")
    reason = (body or {}).get("reason")
    kind = _BY_STATUS.get(status, Unavailable)
    if status == 409 and reason == "AlreadyExists":
        kind = AlreadyExists
    elif status == 500 and "more than one PodDisruptionBudget" in message:
        kind = SeveralBudgets
    return kind(request, message, retry_after=retry_after)
