"""A token bucket over the passed-in clock.

Called by the client (requests per second, spec core/observability §5), the workers of some controllers
and the event recorder. Owns its count only; fair in the order of the callers.
"""

from __future__ import annotations

from controller.clock import Clock

__all__ = ["TokenBucket"]


class TokenBucket:
    """Lets `burst` calls through at once and then `rate` a second."""

    def __init__(self, clock: Clock, *, rate: float, burst: int) -> None:
        """Start full; `rate` is in calls per second."""
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled = clock.monotonic()

    def try_take(self) -> bool:
        """Take a token if one is there."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def take(self) -> None:
        """Take a token, waiting for it if need be."""
        self._fill()
        self._tokens -= 1
        if self._tokens < 0:
            await self._clock.sleep(-self._tokens / self._rate)

    def _fill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
