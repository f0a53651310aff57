"""Breaks anywhere, in callees, loops and try blocks: results, effects and tracebacks are eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from braze import _C, config

LOG: list[Any] = []


class Counter:
    n = 0


def helper(x):
    v = x.sum().item()
    return x + v


def effect_between(x):
    y = x * 2
    LOG.append(len(LOG))
    return y + 1


def branches_in_a_loop(x):
    for i in range(3):
        x = x + i
        x = x * 2 if x.sum() > 0 else x - 1
    return x


def in_callees(x):
    a = helper(x)
    b = helper(a)
    return a, b


def caught_error(x):
    try:
        y = x.reshape(7, 7)
    except RuntimeError:
        y = x + 1
    return y * 2


def raises(x):
    y = x + 1
    raise KeyError(y.shape)


def values_in_a_loop(x):
    out = []
    for i in range(4):
        out.append(x.mean().item() + i)
        x = x.relu() + 1
    return out, x


def class_attribute(x):
    Counter.n += 1
    y = helper(x)
    Counter.n += 1
    return y + Counter.n


def raises_below_finally(x):
    try:
        return helper(x) + x.reshape(99)
    finally:
        LOG.append("finally")


def catches_from_callee(x):
    try:
        return raises_below_finally(x)
    except RuntimeError:
        return x + 5


PROGRAMS = [
    effect_between,
    branches_in_a_loop,
    in_callees,
    caught_error,
    raises,
    values_in_a_loop,
    class_attribute,
    catches_from_callee,
]


def outcome(f: Callable[..., Any]) -> tuple[Any, ...]:
    LOG.clear()
    Counter.n = 0
    try:
        return "ok", repr(f(torch.arange(6.0) - 2)), LOG[:], Counter.n
    except Exception as e:
        traceback, lines = e.__traceback__, []
        while traceback is not None:
            if traceback.tb_frame.f_code.co_name != "outcome":
                lines.append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
            traceback = traceback.tb_next
        return type(e), str(e), lines, LOG[:], Counter.n


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_equals_eager(program: Callable[..., Any], backend: str) -> None:
    f = _C.compile_callable(program, {"backend": backend})
    want = outcome(program)
    for _ in range(3):
        assert outcome(f) == want


@pytest.mark.parametrize("seed", range(3))
def test_equals_eager_where_the_fallback_is_forced(seed: int) -> None:
    before = config.chaos
    config.chaos = f"0.4:{seed}"
    try:
        for program in PROGRAMS:
            f = _C.compile_callable(program, {"backend": "aot_eager"})
            want = outcome(program)
            for _ in range(4):
                assert outcome(f) == want, program.__name__
    finally:
        config.chaos = before


def test_code_behind_a_break_is_compiled() -> None:
    f = _C.compile_callable(in_callees, {"backend": "aot_eager"})
    outcome(f)
    report = _C.explain(f)
    assert report["graphs"] >= 3 and not report["fallbacks"]
    assert [b["reason"] for b in report["breaks"]] == ["a call of item() on a tensor"]
    compiles = _C.stats()["compiles"]
    outcome(f)
    assert _C.stats()["compiles"] == compiles


def test_fullgraph_names_the_line() -> None:
    f = _C.compile_callable(in_callees, {"backend": "eager", "fullgraph": True})
    with pytest.raises(RuntimeError, match=rf"{__file__}:\d+ in helper: .*item"):
        f(torch.ones(2))
    error = _C.compile_callable(raises, {"backend": "eager", "fullgraph": True})
    with pytest.raises(KeyError):
        error(torch.ones(2))
