"""`charpente lint`: what is wrong with manifests, without a cluster.

Reads files, calls `framework.api.linting`, renders the findings for people, programs, SARIF readers and
GitHub. Exit code 0: nothing wrong; 1: errors (with --strict also warnings); 2: a file cannot be opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from controller.cli.sources import read_sources
from framework.api.crds import ALL_GATES
from framework.api.linting import Finding, Severity
from framework.api.linting import lint as findings_in
from framework.api.linting.findings import RULES

__all__ = ["lint"]


def _text(findings: Sequence[Finding], files: int) -> str:
    lines = [f"{each.file}:{each.line}: {each.severity}: {each.message} [{each.rule}]" for each in findings]
    errors = sum(each.severity is Severity.ERROR for each in findings)
    summary = (
        f"{_count(errors, 'error')}, {_count(len(findings) - errors, 'warning')} in {_count(files, 'file')}"
    )
    return "\n".join([*lines, summary, ""])


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _json(findings: Sequence[Finding], files: int) -> str:
    listed = [
        {
            "file": each.file,
            "line": each.line,
            "severity": str(each.severity),
            "rule": each.rule,
            "object": each.obj,
            "field": each.field,
            "problem": each.problem,
            "remedy": each.remedy,
        }
        for each in findings
    ]
    return json.dumps({"files": files, "findings": listed}, indent=2) + "\n"


def _sarif(findings: Sequence[Finding], files: int) -> str:
    del files
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()]
    run = {
        "tool": {"driver": {"name": "charpente lint", "rules": rules}},
        "results": [_sarif_result(each) for each in findings],
    }
    return json.dumps({"version": "2.1.0", "$schema": _SARIF_SCHEMA, "runs": [run]}, indent=2) + "\n"


_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def _sarif_result(finding: Finding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": finding.file}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.rule,
        "level": str(finding.severity),
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


def _github(findings: Sequence[Finding], files: int) -> str:
    del files
    return "".join(
        f"::{each.severity} file={_escaped(each.file)},line={each.line},title={each.rule}::"
        f"{_escaped(each.message)}\n"
        for each in findings
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_RENDERERS: Final[dict[str, Callable[[Sequence[Finding], int], str]]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--strict", is_flag=True, help="Exit 1 on warnings as well.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    type=click.Choice(sorted(ALL_GATES)),
    help="Accept what came after v1.9 behind this gate; may be repeated.",
)
@click.pass_context
def lint(
    context: click.Context, files: tuple[str, ...], form: str, *, strict: bool, gates: tuple[str, ...]
) -> None:
    """Check manifests: FILE is a file, a directory, or - for standard input."""
    sources = {name: text for path in files for name, text in read_sources(path)}
    findings = findings_in(sources, gates=frozenset(gates))
    click.echo(_RENDERERS[form](findings, len(sources)), nl=False)
    failed = any(strict or finding.severity is Severity.ERROR for finding in findings)
    context.exit(1 if failed else 0)
