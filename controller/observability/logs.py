"""JSON logs, one object a line, with the fields that users grep (spec core/observability §3).

Called once by `charpente run`. Everyone logs through `structlog.get_logger("controller")`; the controller
loop binds controller, object and reconcile id. Owns the processors; never decides what is logged.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

__all__ = ["configure", "ref"]

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "": logging.INFO, "error": logging.ERROR}
_UPPER: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR", "critical": "ERROR"}


def configure(
    level: str, *, now: Callable[[], datetime], commit: str = "", stream: TextIO | None = None
) -> None:
    """Log from that level on (debug, info, error or empty for info) to the stream, stdout unless given."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *([_caller()] if level == "debug" else []),
            _exception,
            _fields(now, commit),
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream or sys.stdout),
        cache_logger_on_first_use=False,
    )


def ref(name: str, namespace: str | None = None) -> dict[str, str]:
    """Return an object reference as a log field: `{"name": …}`, with the namespace if there is one."""
    return {"namespace": namespace, "name": name} if namespace else {"name": name}


def _caller() -> Processor:
    parameters = {
        structlog.processors.CallsiteParameter.PATHNAME,
        structlog.processors.CallsiteParameter.LINENO,
    }
    return structlog.processors.CallsiteParameterAdder(parameters)


def _exception(logger: Any, method: str, event: EventDict) -> EventDict:
    cause = event.pop("exc_info", None)
    if cause:
        event["stacktrace"] = structlog.processors.format_exc_info(
            logger, method, {"event": "", "exc_info": cause}
        ).get("exception", "")
    return event


def _fields(now: Callable[[], datetime], commit: str) -> Processor:
    def fields(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
        head: EventDict = {
            "level": _UPPER[method],
            "time": now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "logger": "controller",
            "message": event.pop("event"),
            "commit": commit,
        }
        if "pathname" in event:
            head["caller"] = f"{event.pop('pathname')}:{event.pop('lineno')}"
        return {**head, **event}

    return fields


def _render(logger: Any, method: str, event: EventDict) -> str:  # noqa: ARG001 - a structlog processor
    return orjson.dumps(event, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, tuple):
        return list(value)
    return str(value)
