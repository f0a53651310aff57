"""Stopping at every instruction and going on in CPython's own frames changes nothing that a program can see."""

from __future__ import annotations

import dis
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from braze._C import testing

from . import osr_programs as programs
from .osr_programs import ARGUMENTS, LOG, PROGRAMS, Manager

FILES = (__file__, programs.__file__)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    testing.unregister_all()
    testing.modes(False, False)
    testing.counts()
    yield
    testing.unregister_all()
    testing.modes(False, False)
    assert testing.is_evaluator_default()


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """Value, or everything that an exception shows of the frames it passed."""
    try:
        return ("ok", call(*args))
    except BaseException as e:
        traceback, lines = e.__traceback__, []
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code.co_filename in FILES and frame.f_code.co_name != "outcome":
                lines.append((frame.f_code.co_name, traceback.tb_lineno, sorted(frame.f_locals)))
            traceback = traceback.tb_next
        return ("exc", type(e), str(e), lines, type(e.__context__), type(e.__cause__))


def offsets(f: Callable[..., Any]) -> list[int]:
    """Where a stop can be asked for: every instruction (those inside a group are never reached)."""
    return [i.offset for i in dis.get_instructions(f)]


def offset_of(f: Callable[..., Any], name: str, nth: int = 0) -> int:
    return [i for i in dis.get_instructions(f) if i.opname == name][nth].offset


def sweep(chosen: list[Callable[..., Any]]) -> int:
    runs = 0
    for f in chosen:
        for args in ARGUMENTS:
            LOG.clear()
            want = outcome(f, *args)
            want_log = list(LOG)
            for offset in offsets(f):
                for nth in (1, 2, 3):
                    testing.unregister_all()
                    testing.register(f, offset, nth)
                    LOG.clear()
                    got = outcome(testing.call, f, *args)
                    assert (got, want_log) == (want, LOG), (f.__name__, args, offset, nth)
                    runs += 1
    return runs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("go_on", [False, True], ids=["leave", "go_on"])
def test_stop_everywhere(program: Callable[..., Any], go_on: bool) -> None:
    testing.modes(go_on, False)
    sweep([program])
    for _ in range(100):  # specialised code has the same offsets
        for args in ARGUMENTS:
            outcome(program, *args)
    sweep([program])


def test_every_call_in_real_frames() -> None:
    testing.modes(False, True)
    for f in PROGRAMS:
        for args in ARGUMENTS:
            LOG.clear()
            want = outcome(f, *args)
            want_log = list(LOG)
            testing.unregister_all()
            testing.register(f)
            LOG.clear()
            assert outcome(testing.call, f, *args) == want, f.__name__
            assert want_log == LOG


def low(x, y):
    z = x / y
    return z + 1


def mid(x, y):
    w = x + 1
    try:
        u = low(w, y) + w
    except ZeroDivisionError:
        u = -w
    return u


def mid_stack(x, y):
    w = x + 1
    return (w, low(w, y), w)


def mid_with(x, y):
    m = Manager(True)
    for i in (5, 6):
        with m as k:
            return (i, k, low(x, y), i)
    return None


def top(x, y):
    a = [x]
    for i in (1, 2):
        a.append((i, mid(x, y), mid_with(x, y)))
    try:
        a.append(mid_stack(x, y))
    except ZeroDivisionError as e:
        traceback, lines = e.__traceback__, []
        while traceback:
            lines.append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
            traceback = traceback.tb_next
        a.append(lines)
    return a, mid_stack(x, y)


CHAIN = (low, mid, mid_stack, mid_with, top)


@pytest.mark.parametrize("where", CHAIN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("modes", [(False, False), (True, False), (False, True)], ids=["leave", "go_on", "calls"])
def test_inlined_chain(where: Callable[..., Any], modes: tuple[bool, bool]) -> None:
    for args in ((4, 2), (4, 0)):
        want = outcome(top, *args)
        for offset in offsets(where):
            for nth in (1, 2, 3):
                testing.unregister_all()
                for f in CHAIN:
                    testing.register(f)
                testing.register(where, offset, nth)
                testing.modes(*modes)
                assert outcome(testing.call, top, *args) == want, (args, offset, nth)


def probe(tag):
    f, found = sys._getframe(1), []
    while f is not None and f.f_code.co_name in ("outer_frame", "inner_frame"):
        found.append((f.f_code.co_name, f.f_lineno, dict(f.f_locals)))
        f = f.f_back
    return tag, found, f.f_code.co_name


def inner_frame(p):
    q = p + 1
    r = probe("x")
    return r, q


def outer_frame(a):
    b = a * 2
    c = 7
    return [b, inner_frame(b), c]


def test_frames_seen_by_a_call() -> None:
    want = outcome(outer_frame, 5)
    testing.register(outer_frame)
    testing.register(inner_frame)
    assert outcome(testing.call, outer_frame, 5) != want  # interpreted frames are invisible
    testing.modes(False, True)
    testing.counts()
    assert outcome(testing.call, outer_frame, 5) == want
    assert testing.counts()["materialised"] >= 1
    testing.register(programs.frames)
    testing.register(programs.Sub.method)
    assert outcome(testing.call, programs.frames, 1, 2) == outcome(programs.frames, 1, 2)
    node = programs.Sub()
    assert testing.call(programs.Sub.method, node, 4) == node.method(4)


def test_native_code_goes_on_behind_calls() -> None:
    printed: list[int] = []

    def f(n):
        s = 0
        for i in range(n):
            s = s + i
            printed.append(s)
        return s

    testing.register(f)
    assert testing.call(f, 50) == 1225
    assert len(printed) == 50
    assert testing.counts()["materialised"] == 0
    testing.modes(False, True)
    assert testing.call(f, 50) == 1225
    counts = testing.counts()
    assert counts["materialised"] == 51 and counts["returned"] == 1 and counts["performed"] > 300


def test_generators_and_star_arguments() -> None:
    want = list(programs.generator(3, 3))
    for offset in offsets(programs.generator):
        testing.register(programs.generator, offset)
        made = testing.call(programs.generator, 3, 3)
        assert list(made) == want and made.gi_frame is None
    for offset in offsets(programs.star_arguments):
        testing.register(programs.star_arguments, offset)
        assert testing.call(programs.star_arguments, 1, 2, 9, 8) == programs.star_arguments(1, 2, 9, 8)


def test_tracing_is_left_alone() -> None:
    events: list[Any] = []

    def tracer(frame, event, _):
        if frame.f_code is programs.plain.__code__:
            events.append((event, frame.f_lineno))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    programs.plain(1, 2)
    sys.settrace(before)
    want = events[:]
    events.clear()
    testing.register(programs.plain, offsets(programs.plain)[6])
    sys.settrace(tracer)
    testing.call(programs.plain, 1, 2)
    sys.settrace(before)
    assert events == want and len(events) > 4


def recurse(n):
    if n == 0:
        return depth_seen()
    return 1 + recurse(n - 1)


def depth_seen():
    depth, f = 0, sys._getframe(1)
    while f.f_code.co_name == "recurse":
        depth += 1
        f = f.f_back
    return depth


def test_deep_recursion() -> None:
    def reach(call, *args):
        try:
            call(*args)
        except RecursionError as e:
            n, traceback = 0, e.__traceback__
            while traceback:
                n += 1
                traceback = traceback.tb_next
            return str(e), n
        return None

    testing.register(recurse)
    testing.modes(False, True)
    assert testing.call(recurse, 300) == 300 + 301  # 301 real frames, several chunks of the data stack
    want = reach(recurse, 20000)
    got = reach(testing.call, recurse, 20000)
    assert got is not None and want is not None
    assert got[0].startswith("maximum recursion depth exceeded")


def test_references_and_memory() -> None:
    class Thing:
        pass

    def make(a, d):
        q = (a, d)
        if a is None:
            raise KeyError(a)
        return q

    def f(a, b):
        c = [a, b]
        for x in c:
            d = (x, c)
        return make(a, d)

    o, p = Thing(), Thing()
    stop = offset_of(make, "BUILD_TUPLE") + 2

    def many(k):
        for _ in range(k):
            testing.register(f)
            testing.register(make, stop)
            testing.call(f, o, p)
            with pytest.raises(KeyError):
                testing.call(f, None, p)

    def refs():
        gc.collect()
        testing.unregister_all()
        return [sys.getrefcount(x) for x in (o, p, f, f.__code__, make)], sys.getallocatedblocks()

    many(200)
    before, blocks = refs()
    many(3000)
    after, more_blocks = refs()
    assert all(abs(x - y) < 5 for x, y in zip(before[:3], after[:3], strict=True)), (before, after)
    assert more_blocks - blocks < 3000 * 2


def test_frame_object_outlives_the_run() -> None:
    keep: list[Any] = []

    def f(a, b):
        c = a + b
        keep.append(sys._getframe())
        d = c + 1
        return d

    testing.register(f)
    testing.modes(False, True)
    assert testing.call(f, 1, 2) == 4
    frame = keep.pop()
    gc.collect()
    assert frame.f_code is f.__code__
    assert frame.f_lineno == f.__code__.co_firstlineno + 4


def test_threads() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    bad: list[Any] = []
    testing.modes(True, False)
    for f in CHAIN:
        testing.register(f)
    want = {(a, b): outcome(top, a, b) for a in range(1, 5) for b in range(3)}
    stops = offsets(low)

    def work(k):
        for i in range(300):
            a, b = 1 + (i + k) % 4, i % 3
            testing.register(low, stops[(i * 7 + k) % len(stops)], 1)
            if outcome(testing.call, top, a, b) != want[a, b]:
                bad.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(interval)
    assert not bad
