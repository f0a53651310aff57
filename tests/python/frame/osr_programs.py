"""Sample programs for test_osr: every kind of block, call and exception that a frame can be stopped in."""

from __future__ import annotations

import sys
from typing import Any

LOG: list[Any] = []


def plain(a, b):
    c = a + b
    d = c * 2
    if d > 10:
        d = d - a
    return d, c


def loop(a, b):
    out = []
    for i in range(a):
        for j in (1, 2, b):
            out.append(i * j)
    return out


def comprehension(a, b):
    k = 3
    x = [i * k + a for i in range(b)]
    return x


def try_except_finally(a, b):
    r = 0
    try:
        r = a + 1
        r = r / b
        r = r + 1
    except ZeroDivisionError as e:
        r = ("caught", str(e), r)
    finally:
        LOG.append(r)
    return r


def nested_try(a, b):
    try:
        try:
            x = a / b
        except ZeroDivisionError as e:
            y = a + 1
            raise KeyError(y) from e
    finally:
        LOG.append("f")
    return x


class Manager:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        LOG.append("in")
        return 5

    def __exit__(self, kind, value, traceback):
        LOG.append(("out", kind))
        return self.swallow


def with_block(a, b):
    m = Manager(a == 1)
    with m as k:
        z = k + a
        z = z / b
    return z if b else "swallowed"


def closure(a, b):
    n = a + 1

    def inner(q):
        nonlocal n
        n = n + q
        return n

    r = inner(b)
    a = r + n
    return a, r, n, (lambda: a)()


def _make_free_user():
    free = 10

    def free_user(a, b):
        nonlocal free
        loc = free + a
        in_cell = loc * 2
        g = lambda: in_cell + free + b  # noqa: E731
        free = 10
        return g(), loc

    return free_user


free_user = _make_free_user()


def keyword_calls(a, b):
    x = sorted([a, b, 3], key=lambda v: -v, reverse=bool(a))
    y = dict(p=a, q=b)  # noqa: C408
    return x, y, max(a, b, key=lambda v: v)


def unbound(a, b):
    if b:
        zz = a
    w = a
    return w + zz


def generator(a, b):
    t = a
    for i in range(b + 2):
        t = t + i
        got = yield t
        if got:
            t = t + got
    return t


def uses_generator(a, b):
    return list(generator(a, b))


def jumps(a, b):
    s = 0
    while s < 5:
        s = s + 1
        if s == 3:
            s = s + a
            continue
        s = s + b
    return s


def star_arguments(a, b, *c, k=4, **kw):
    s = a + b + k
    return s, c, sorted(kw)


class Node:
    def __init__(self):
        self.v = 3

    def method(self, x):
        return self.v + x


class Sub(Node):
    def method(self, x):
        y = x + 1
        return super().method(y) * 2


def methods(a, b):
    n = Sub()
    n.v = a
    return n.method(b) + n.v


def line_of(frame):
    return frame.f_lineno


def frames(a, b):
    me = sys._getframe()
    q = a + b
    names = sorted(locals())
    names.remove("me")
    return me.f_code.co_name, line_of(me), names, sys._getframe(1).f_code.co_name, eval("q + 1")


def raisers(a, b):
    r = []
    try:
        for i in a:
            r.append(i)
    except TypeError as e:
        r.append((str(e), e.__traceback__.tb_lineno))
    try:
        r = sorted(
            [2, 1],
            key=b,
            reverse=True,
        )
    except TypeError as e:
        r.append((str(e), e.__traceback__.tb_lineno))
    x = r[0]
    y = x < (1, 2) if b else None
    a.zz = 1 if a == 1 else 2
    with b:
        pass
    return y


def more_raisers(a, b):
    k = a
    with Manager(a):
        k.attr  # noqa: B018
    if a != 7:
        with Manager(b):
            k = k + 1
            k(1)
    try:
        q = "s" + k
    finally:
        del k
    return q


PROGRAMS = [
    raisers,
    more_raisers,
    plain,
    loop,
    comprehension,
    try_except_finally,
    nested_try,
    with_block,
    closure,
    free_user,
    keyword_calls,
    unbound,
    uses_generator,
    jumps,
    methods,
]
ARGUMENTS = [(1, 2), (3, 0), (0, 1), (7, 3)]
