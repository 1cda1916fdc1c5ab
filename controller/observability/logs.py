"""JSON logs, one object a line, with the fields that users grep (spec core/observability §3).

Called once by `charpente run`. Everyone logs through `structlog.get_logger("controller")`; the controller
loop binds controller, object and reconcile id. Owns the processors; never decides what is logged.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, Processor

from framework.api import UserError

__all__ = ["LogOutput", "Outputs", "configure", "ref"]

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "": logging.INFO, "error": logging.ERROR}
_UPPER: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR", "critical": "ERROR"}


class LogOutput(UserError):
    """A place for logs cannot be written."""


def configure(
    level: str,
    *,
    now: Callable[[], datetime],
    commit: str = "",
    stream: TextIO | Outputs | None = None,
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
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", stream or sys.stdout)),
        cache_logger_on_first_use=False,
    )


class Outputs:
    """Several places that every line goes to: `stdout`, `stderr`, or files that are appended to."""

    def __init__(self, paths: str, errors: str) -> None:
        """Open the places, comma separated; a line that one cannot take is told to `errors`.

        Raises: LogOutput, naming the path that cannot be written.
        """
        self._places = [_opened(path) for path in _listed(paths)]
        self._errors = [_opened(path) for path in _listed(errors)]

    def write(self, text: str) -> None:
        """Write to every place; one that fails does not keep the others from it."""
        for place in self._places:
            try:
                place.write(text)
            except OSError as exc:
                for told in self._errors:
                    with contextlib.suppress(OSError):
                        told.write(f"a log line could not be written: {exc}\n")

    def close(self) -> None:
        """Close the files."""
        for place in (*self._places, *self._errors):
            if place not in (sys.stdout, sys.stderr):
                place.close()

    def flush(self) -> None:
        """Flush every place."""
        for place in self._places:
            with contextlib.suppress(OSError):
                place.flush()


def _listed(paths: str) -> list[str]:
    return [path for path in (each.strip() for each in paths.split(",")) if path]


def _opened(path: str) -> TextIO:
    standard = {"stdout": sys.stdout, "stderr": sys.stderr}.get(path)
    if standard is not None:
        return standard
    try:
        return open(path.removeprefix("file://"), "a", buffering=1, encoding="utf-8")
    except OSError as exc:
        raise LogOutput(f"logs cannot be written to {path}: {exc.strerror}; name another file") from exc


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
