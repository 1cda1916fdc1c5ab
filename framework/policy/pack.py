"""The rules as a Pulumi policy pack.

Called by `framework.policy.__main__`. Owns the pack's name, and the one setting that makes the rules for
production apply: `{"limited-pools": {"production": true}, …}` in the file of `--policy-pack-config`.
"""

from __future__ import annotations

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)

from framework.policy.rules import RULES, Declared, Rule

NAME = "charpente"
_PRODUCTION = "production"


def policy(rule: Rule) -> StackValidationPolicy:
    """One rule as Pulumi's policy; a rule for production alone says nothing until it is told so."""

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        if rule.production and not args.get_config().get(_PRODUCTION):
            return
        declared = [
            Declared(type=each.resource_type, name=each.name, properties=each.props)
            for each in args.resources
        ]
        for problem in rule.judge(declared):
            report(problem, None)

    schema = PolicyConfigSchema(properties={_PRODUCTION: {"type": "boolean", "default": False}})
    return StackValidationPolicy(
        name=rule.name,
        description=rule.about,
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
        config_schema=schema if rule.production else None,
    )


def declare() -> PolicyPack:
    """Hand all rules to the engine that started this process."""
    return PolicyPack(name=NAME, policies=[policy(rule) for rule in RULES])
