"""What is wrong with manifests on disk, before any cluster sees them.

Called by `charpente lint` and by previews of stacks. Reads text that it is given; never opens files,
never talks to a server.
"""

from __future__ import annotations

from framework.api.linting.findings import Finding, Severity
from framework.api.linting.lint import lint

__all__ = ["Finding", "Severity", "lint"]
