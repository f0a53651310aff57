"""CompiledFunction: arguments, attributes, binding, lifetime and the ways back to the original."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import weakref
from typing import Any

import pytest
import torch

from braze import _C

SETTINGS: dict[str, Any] = {"fullgraph": False, "backend": "eager", "options": None}


def compiled(f: Any, **more: Any) -> Any:
    return _C.compile_callable(f, SETTINGS | more)


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as e:
        return type(e), str(e)


def full(a, b=2, /, c=3, *rest, d=4, e, **more):
    return a, b, c, rest, d, e, more


def simple(a, b):
    return b, a


@compiled
def decorated(x):
    """Add one."""
    return x + 1


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1,), {"e": 5}),
        ((1, 2, 3, 4, 5), {"e": 5, "z": 1}),
        ((1,), {"c": 7, "d": 8, "e": 9}),
        ((), {"e": 5}),
        ((1,), {}),
        ((1,), {"a": 2, "e": 1}),
        ((1, 2, 3), {"c": 2, "e": 1}),
        ((1,), {"b": 2, "e": 1}),
    ],
)
def test_arguments_bind_as_in_python(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert outcome(compiled(full), *args, **kwargs) == outcome(full, *args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((1, 2), {}), ((1,), {"b": 3}), ((), {}), ((1, 2, 3), {}), ((1,), {"q": 1})]
)
def test_simple_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert outcome(compiled(simple), *args, **kwargs) == outcome(simple, *args, **kwargs)


def test_looks_like_the_original() -> None:
    f = decorated
    assert (f.__name__, f.__qualname__, f.__module__, f.__doc__) == ("decorated", "decorated", __name__, "Add one.")
    assert inspect.signature(f) == inspect.signature(f.__wrapped__)
    assert f.options == SETTINGS
    f.note = 3
    assert f.note == 3
    assert copy.deepcopy(f) is f and copy.copy(f) is f
    assert pickle.loads(pickle.dumps(f)) is f
    assert "decorated" in repr(f)


def test_binds_as_a_method() -> None:
    class Thing:
        @compiled
        def method(self, x):
            return self, x

        def __call__(self, x):
            return "called", x

        @staticmethod
        @compiled
        def static(x):
            return x

    thing = Thing()
    assert thing.method(3) == (thing, 3)
    assert Thing.method(thing, 3) == (thing, 3)
    assert Thing.static(4) == 4
    assert compiled(thing.method)(5) == (thing, 5)
    assert compiled(thing)(6) == ("called", 6)


def test_other_callables() -> None:
    assert compiled(functools.partial(simple, 1))(2) == (2, 1)
    assert compiled(max)(3, 4) == 4
    assert list(compiled(uses_yield)(3)) == [0, 1, 2]
    module = torch.nn.Linear(3, 2)
    x = torch.ones(1, 3)
    torch.testing.assert_close(compiled(module)(x), module(x))
    with pytest.raises(TypeError, match="not a callable"):
        compiled(3)


def uses_yield(n):
    yield from range(n)


def test_garbage_collection_sees_entries() -> None:
    class Big:
        pass

    def make():
        big = Big()

        def inner(x):
            return big.weight * x

        big.weight = torch.ones(2)
        big.f = compiled(inner)
        big.f(torch.ones(2))
        return weakref.ref(big)

    found = make()
    gc.collect()
    assert found() is None


def test_references_are_kept_even() -> None:
    def f(x, y):
        z = [x, y]
        return z

    thing, g = object(), compiled(f)
    g(thing, 1)
    before = sys.getrefcount(thing)
    for _ in range(100):
        g(thing, 1)
    assert sys.getrefcount(thing) == before


def test_reset_forgets() -> None:
    f = compiled(simple)
    f(1, 2)
    assert _C.explain(f)["guards"] is not None
    _C.reset()
    assert _C.stats()["compiles"] == 0
    assert f(1, 2) == (2, 1)


def test_foreign_modes_run_the_original() -> None:
    f = compiled(lambda x: x.sin())
    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.func.vmap(f)(x), x.sin())
    torch.testing.assert_close(torch.func.grad(lambda y: f(y).sum())(x), x.cos())
    assert _C.explain(f)["fallbacks"].get("foreign mode") == 2
    torch.testing.assert_close(f(x), x.sin())


def test_tracing_functions_see_every_line() -> None:
    events: list[int] = []

    def body(x):
        y = x + 1
        return y * 2

    f = compiled(body)
    f(1)

    def tracer(frame, event, _):
        if frame.f_code is body.__code__ and event == "line":
            events.append(frame.f_lineno)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    f(1)
    sys.settrace(before)
    assert len(events) == 2


def test_threads_agree() -> None:
    def body(x, n):
        y = x * n
        return y.sum() + n

    f, bad = compiled(body), []

    def work(n):
        x = torch.full((n,), 2.0)
        for _ in range(20):
            if f(x, n).item() != 2.0 * n * n + n:
                bad.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


def test_recompile_limit_leaves_the_point_to_python() -> None:
    f = compiled(lambda x, n: x + n, options={"recompile_limit": 2})
    x = torch.ones(2)
    for n in range(5):
        torch.testing.assert_close(f(x, n), x + n)
    report = _C.explain(f)
    assert report["fallbacks"].get("recompile limit") == 1
    assert report["fallbacks"].get("left to Python") == 2
    assert len(report["recompiles"]) == 2
    torch.testing.assert_close(f(x, 0), x)  # compiled entries still serve


def test_failing_run_raises_eagers_error_and_effects() -> None:
    class State:
        n = 0

    def body(state, table, index):
        state.n += 1
        row = table[index]
        state.n += 10
        return row * 2

    f, table = compiled(body), torch.arange(4.0)
    state = State()
    torch.testing.assert_close(f(state, table, torch.tensor([1])), table[[1]] * 2)
    assert state.n == 11
    with pytest.raises(IndexError):
        f(state, table, torch.tensor([9]))
    assert state.n == 12


def test_exceptions_show_the_users_lines() -> None:
    def body(x):
        y = x + 1
        if y.shape[0] == 2:
            raise ValueError("two")
        return y

    f = compiled(body)
    for _ in range(2):
        with pytest.raises(ValueError, match="two") as caught:
            f(torch.ones(2))
        last = caught.traceback[-1]
        assert last.name == "body"
        assert last.lineno + 1 == body.__code__.co_firstlineno + 3


def test_breaks_run_in_real_frames() -> None:
    seen: list[Any] = []

    def look():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals), frame.f_back.f_code.co_name))

    def inner(x):
        y = x * 2
        look()
        return y + 1

    def outer(x):
        z = inner(x) * 3
        look()
        return z

    x = torch.ones(3)
    want = outer(x)
    expected = seen[:]
    f = compiled(outer)
    for _ in range(3):
        seen.clear()
        torch.testing.assert_close(f(x), want)
        assert [s[:3] for s in seen] == [s[:3] for s in expected]
        assert seen[0][3] == "outer"
