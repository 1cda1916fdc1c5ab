"""What the engine starts for the policy pack."""

from __future__ import annotations

from framework.policy.pack import declare

declare()
