"""The AWS permissions of Charpente: one table of calls, and every policy document generated from it.

Called by `framework.components` (documents) and `controller.cloud.aws` (the table).
Owns what the controller may do in an account; imports neither Pulumi nor boto3.
"""

from __future__ import annotations

from framework.iam.calls import CALLS, Batch, Call, Need, Retry, Service, call
from framework.iam.documents import Document, Effect, Statement
from framework.iam.grants import PolicyPart
from framework.iam.policies import controller_policies, policy_name
from framework.iam.scope import Scope
from framework.iam.sids import Sid

__all__ = [
    "CALLS",
    "Batch",
    "Call",
    "Document",
    "Effect",
    "Need",
    "PolicyPart",
    "Retry",
    "Scope",
    "Service",
    "Sid",
    "Statement",
    "call",
    "controller_policies",
    "policy_name",
]
