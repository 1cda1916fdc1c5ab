"""The policy pack: what every stack with Charpente must hold, judged at preview.

Run by the engine (`pulumi preview --policy-pack framework/policy`). `rules` holds the rules as functions of
plain values, `pack` hands them to Pulumi.
"""

from __future__ import annotations
