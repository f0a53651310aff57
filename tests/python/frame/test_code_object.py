"""Decoded code objects agree with the dis module."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

import pytest

from braze._C import testing

from .osr_programs import PROGRAMS

JOINED = {"EXTENDED_ARG", "KW_NAMES"}


def _make_long() -> Callable[..., Any]:
    """A function whose jumps and constants need EXTENDED_ARG."""
    body = "\n".join(f"        x.append({i}.25)" for i in range(300))
    scope: dict[str, Any] = {}
    exec(f"def f(a):\n    x = []\n    while a:\n{body}\n        a = g(a, k={{}}, m=1)\n    return x\n", scope)
    return scope["f"]  # type: ignore[no-any-return]


def expected(f: Callable[..., Any]) -> list[tuple[int, str, int]]:
    """(first unit of the group, opcode, argument): prefixes and KW_NAMES [PRECALL] belong to what follows."""
    result, start, in_call = [], None, False
    for i in dis.get_instructions(f):
        start = i.offset if start is None else start
        in_call = in_call or i.opname == "KW_NAMES"
        if i.opname in JOINED or (in_call and i.opname == "PRECALL"):
            continue
        result.append((start, i.opname, i.arg or 0))
        start, in_call = None, False
    return result


@pytest.mark.parametrize("f", [*PROGRAMS, _make_long()], ids=lambda f: f.__name__)
def test_instructions(f: Callable[..., Any]) -> None:
    decoded = testing.decode(f)
    assert [(at, name, arg) for at, name, arg, _, _ in decoded] == expected(f)
    for (_, _, _, behind, _), (following, *_) in zip(decoded, decoded[1:], strict=False):
        assert behind == following


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_handlers(f: Callable[..., Any]) -> None:
    table = [(e.start, e.end, e.target, e.depth, e.lasti) for e in dis.Bytecode(f).exception_entries]
    assert testing.handlers(f) == table


def test_keyword_names() -> None:
    def f(g):
        return g(1, a=2)

    calls = [i for i in testing.decode(f) if i[1] == "CALL"]
    assert len(calls) == 1
    assert f.__code__.co_consts[calls[0][4]] == ("a",)
