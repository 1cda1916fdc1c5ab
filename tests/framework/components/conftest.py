from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.framework.components.recorder import Recorder, declared

Declare = Callable[..., Recorder]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def declare(recorder: Recorder) -> Declare:
    return lambda program, **options: declared(program, recorder, **options)
