"""Small programs of every language feature, eager and compiled: results, mutations, exceptions."""

import collections
import copy
import dataclasses
import functools
import itertools
import math
import operator
from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import braze

PROGRAMS = []


def program(make):
    """Register a factory that returns (function, list of argument tuples); everything is built anew per run."""
    PROGRAMS.append(make)
    return make


def equal(a: Any, b: Any) -> bool:
    """Nested equality; tensors by value, dtype, shape and requires_grad."""
    if isinstance(b, torch.Tensor):
        return (
            isinstance(a, torch.Tensor)
            and type(a) is type(b)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.requires_grad == b.requires_grad
            and torch.allclose(a.detach().double(), b.detach().double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        )
    if isinstance(b, dict):
        return type(a) is type(b) and list(a) == list(b) and all(equal(a[k], b[k]) for k in b)
    if isinstance(b, (list, tuple, deque)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if dataclasses.is_dataclass(b) and not isinstance(b, type):
        return type(a) is type(b) and equal(vars(a), vars(b))
    if isinstance(b, float):
        return isinstance(a, float) and (a == b or math.isclose(a, b, rel_tol=1e-6) or (a != a and b != b))
    return type(a) is type(b) and a == b


def outcomes(function, calls):
    """Results (or exception type and text) of the calls, and the arguments afterwards."""
    rows = []
    for args in calls:
        try:
            rows.append(("ok", function(*args), args))
        except Exception as error:  # noqa: BLE001: the program may raise anything
            rows.append(("raised", type(error).__name__, str(error)))
    return rows


@pytest.mark.parametrize("backend", ["eager"])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda m: m.__name__)
def test_program(make, backend):
    """Three rounds of the same calls, compiled and eager."""
    torch.manual_seed(0)
    function, calls = make()
    expected = outcomes(function, copy.deepcopy(calls)) + outcomes(function, copy.deepcopy(calls))
    torch.manual_seed(0)
    function, calls = make()
    compiled = braze.compile(function, backend=backend)
    got = outcomes(compiled, copy.deepcopy(calls)) + outcomes(compiled, copy.deepcopy(calls))
    for g, e in zip(got, expected, strict=True):
        assert equal(g, e), f"{make.__name__}: got {g}, expected {e}"


def x34():
    return torch.arange(12.0).view(3, 4) / 7 - 0.5


@program
def pointwise():
    return lambda x, y: (x * y).relu().sum(dim=1), [(x34(), x34() + 1)]


@program
def containers():
    def f(x):
        a = [x, x + 1]
        a.append(x * 2)
        d = {"a": a, "b": (x, a), **{"c": 3}}
        b, *rest = a
        s = {1, 2, 3} | {4}
        return d, rest, a is d["a"], len(s), sorted(s), a[::-1], [t.shape for t in a], {k: 1 for k in d}

    return f, [(x34(),)]


@program
def old_list_changes():
    log = [1]

    def f(x, out):
        log.append(len(log))
        out.append(x + len(log))
        out[0] = x
        log[0] += 1
        return out[-1] * log[0], len(log), list(log)

    return f, [(x34(), [0, 1]), (x34(), [5])]


@program
def old_dict_changes():
    state = {"n": 0, "last": None}

    def f(x, cfg):
        state["n"] += 1
        if state["last"] is not None:
            x = x + state["last"]
        state["last"] = x * 0.5
        cfg.setdefault("k", []).append(x.shape[0])
        cfg.pop("gone", None)
        return x, state["n"], dict(cfg), "n" in state, [k for k in state]

    return f, [(x34(), {"gone": 1}), (x34(), {"z": 2, "gone": 1})]


class Counter2:
    scale = 2.0

    def __init__(self):
        self.n, self.items = 0, []

    @property
    def double(self):
        self.n += 1
        return self.n * 2

    @double.setter
    def double(self, v):
        self.n = v

    @classmethod
    def made(cls):
        return cls()

    @staticmethod
    def plus(a, b=1, *rest, k=2, **kw):
        return a + b * k + len(rest) + len(kw)

    def __call__(self, x):
        self.items.append(self.double)
        return x * self.scale + self.plus(1, 2, 3, z=1)

    def __add__(self, other):
        return self.n + other

    def __radd__(self, other):
        return other - self.n

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)

    def __contains__(self, v):
        return v in self.items

    def __iter__(self):
        return iter(self.items)

    def __bool__(self):
        return self.n > 2

    def __eq__(self, other):
        return isinstance(other, Counter2) and self.n == other.n

    __hash__ = None


@program
def instances():
    c = Counter2()

    def f(x):
        y = c(x) + (c + 1) + (5 + c) + c[0] + len(c)
        d = Counter2.made()
        d.double = 7
        return y, 2 in c, [*c], bool(c), c == d, d.n, c.n, getattr(c, "nothing", 3), hasattr(c, "n")

    return f, [(x34(),), (x34(),)]


@program
def closures():
    total = 0

    def f(x):
        nonlocal total
        total += 1
        k = 3

        def inner(v):
            nonlocal k
            k += 1
            return v * k + total

        g = lambda v, m=k: inner(v) + m  # noqa: E731
        return g(x), inner(x), k, total

    return f, [(x34(),), (x34(),)]


@program
def generators():
    def gen(x, n):
        for i in range(n):
            got = yield x + i
            assert got is None

    def both(x):
        yield from gen(x, 2)
        yield x * 10

    def f(x):
        parts = list(both(x))
        s = sum(p.sum() for p in parts)
        q, k, v = (z * 2 for z in x.split(1))
        return parts, s, q + k, v, any(p.dim() == 2 for p in parts), tuple(i * 2 for i in range(3))

    return f, [(x34(),)]


@program
def iteration():
    def f(x):
        out = []
        for i, (a, b) in enumerate(zip(x, x.flip(0))):
            if i == 1:
                continue
            out.append(a + b)
        for k in reversed(range(3)):
            if k == 0:
                break
            out.append(x[k])
        else:
            out.append(None)
        m = list(map(lambda r: r * 2, x.unbind()))
        c = list(itertools.chain([1], (2, 3)))
        acc = list(itertools.accumulate([1, 2, 3], operator.mul))
        return (
            out,
            m,
            c,
            acc,
            functools.reduce(lambda p, q: p + q, out[:2]),
            max([1, 5, 2]),
            min(3, 1),
            sorted([3, 1, 2], key=lambda v: -v),
        )

    return f, [(x34(),)]


@program
def exceptions():
    def pick(d, k):
        try:
            return d[k]
        except KeyError as e:
            return f"no {e.args[0]}"
        finally:
            d["seen"] = d.get("seen", 0) + 1

    def f(x, k):
        d = {"a": x}
        r = pick(d, k)
        try:
            if k == "z":
                raise ValueError("bad " + k)
            s = x * 2
        except (TypeError, ValueError) as e:
            s = x - len(str(e))
        else:
            s = s + 1
        if k == "boom":
            raise RuntimeError("boom")
        return r, s, d["seen"]

    return f, [(x34(), "a"), (x34(), "z"), (x34(), "boom")]


@program
def failing_ops():
    def f(x, b):
        try:
            return x + b.expand_as(x)
        except RuntimeError:
            pass
        return x.sum() + b.sum()

    return f, [(x34(), torch.randn(4)), (x34(), torch.randn(5))]


@program
def grad_modes():
    def f(x):
        with torch.no_grad():
            a = x * 2
        with torch.enable_grad():
            b = x * 3
        return a, b, torch.is_grad_enabled()

    return f, [(x34().requires_grad_(),)]


@program
def prints():
    def f(x):
        y = x + 1
        print("mid", y.shape)
        z = [y * i for i in range(2)]
        print("end")
        return z, y

    return f, [(x34(),)]


@program
def print_in_loop():
    def f(x):
        for i in range(3):
            x = x * (i + 1)
            print(i)
        return x

    return f, [(x34(),)]


def helper(x, n):
    y = x + n
    print("in helper", n)
    return y * 2


@program
def print_in_callee():
    def f(x):
        a = [helper(x, 1)]
        a.append(helper(a[0], 2))
        return a

    return f, [(x34(),)]


@program
def reads_values():
    def f(x):
        if x.sum() > 0:
            return x * x.max().item()
        return x.tolist()

    return f, [(x34() + 3,), (x34() - 3,)]


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Box:
    a: Any
    b: Any = None
    c: list = dataclasses.field(default_factory=list)


@program
def records():
    def f(x, p, box):
        q = Point(x, p.y + 1)
        n = Box(x * 2, c=[q])
        n.b = dataclasses.replace(box, b=n.a)
        box.c.append(x)
        return q, n, q._replace(x=1), box.a

    return f, [(x34(), Point(1, x34()), Box(3))]


@program
def collections_used():
    od, dd, dq, ct = OrderedDict(a=1), defaultdict(list), deque(maxlen=2), collections.Counter()

    def f(x, k):
        od[k] = x.shape
        od.move_to_end("a")
        dd[k].append(x * 2)
        dq.append(x.sum())
        ct[k] += 2
        ct.update([k, "q"])
        return list(od), dict(dd), list(dq), dict(ct), ct.most_common(1)

    return f, [(x34(), "a"), (x34(), "b")]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.norm = nn.LayerNorm(4)
        self.drop = nn.Dropout(0.0)
        self.register_buffer("count", torch.zeros(1))
        self.calls = 0
        self.last = None

    def forward(self, x, *, scale=1.0, **kw):
        self.calls += 1
        self.count += 1
        for i, layer in enumerate(self.layers):
            x = F.gelu(layer(x)) * scale + i
        self.last = x.detach()
        return {"x": self.drop(self.norm(x)), "n": self.calls, "kw": sorted(kw)}


@program
def modules():
    net = Net()
    return net, [(x34(),), (x34(),)]


@program
def module_attributes():
    net = Net()

    def f(x):
        y = net(x, scale=0.5, extra=1)
        return y, [n for n, _ in net.named_parameters()], net.last is not None, sum(p.numel() for p in net.parameters())

    return f, [(x34(),)]


@program
def hooked():
    net, seen = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), []
    net[0].register_forward_hook(lambda m, a, out: seen.append(out.shape) or out + 1)
    net.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
    return lambda x: (net(x), len(seen)), [(x34(),)]


@program
def inplace():
    def f(x, y):
        x.add_(1)
        y[0] = x[1]
        z = x.view(-1)
        z.mul_(2)
        return x.sum(), z[0]

    return f, [(x34(), x34())]


@program
def strings():
    def f(x, name):
        t = f"{name!r:>8}|{x.shape[0]:03d}|{3.14159:.2f}" + "%s-%d" % (name, 3)
        return t.upper().split("|"), ",".join([name, "b"]), name in "abc", name * 2, str(1.5), repr([1, "a"])

    return f, [(x34(), "a"), (x34(), "zz")]


@program
def calls():
    def g(a, /, b, *args, c=3, **kw):
        return a, b, args, c, sorted(kw.items())

    p = functools.partial(g, 1, c=5)

    def f(x):
        return g(1, 2), g(*[1, 2, 3], **{"c": 4, "z": 5}), p(2), p(2, c=6), (lambda *a: len(a))(*range(3)), x + p(0)[3]

    return f, [(x34(),)]


@program
def wrong_calls():
    def g(a, b):
        return a

    def f(x, mode):
        if mode == 0:
            return g(x)
        if mode == 1:
            return x + undefined_name  # noqa: F821
        if mode == 2:
            return x.nothing
        return [1, 2][mode]

    return f, [(x34(), m) for m in range(4)]


@program
def slicing():
    def f(x):
        r = range(2, 11, 3)
        l = [0, 1, 2, 3, 4]
        l[1:3] = [9]
        del l[0]
        return x[..., 1:], x[:, None], x[[0, 2]], x[x > 0].shape, l, r[::-1], list(r[1:]), (1, 2, 3)[-1]

    return f, [(x34(),)]


@program
def unpacking():
    def f(x):
        (a, b), *c = [(x, 1), 2, 3]
        d = {**{"p": 1}, "q": 2}
        return [*c, *d], (*c, a), {**d, "r": b}, a

    return f, [(x34(),)]


class Base:
    def __init__(self, k):
        self.k = k

    def go(self, x):
        return x * self.k


class Derived(Base):
    __slots__ = ("extra",)

    def __init__(self, k):
        super().__init__(k)
        self.extra = k + 1

    def go(self, x):
        return super().go(x) + self.extra


@program
def inheritance():
    old = Derived(3)

    def f(x):
        new = Derived(2)
        old.extra += 1
        return new.go(x), old.go(x), isinstance(new, Base), type(new).__name__, old.extra

    return f, [(x34(),), (x34(),)]


@program
def imports():
    def f(x):
        import math as m
        from math import pi

        return x * pi + m.sqrt(4.0)

    return f, [(x34(),)]


GLOBAL = 1


@program
def globals_written():
    def f(x):
        global GLOBAL
        GLOBAL = GLOBAL + 1
        r = x * GLOBAL
        GLOBAL -= 1
        return r, GLOBAL

    return f, [(x34(),)]


@program
def while_and_walrus():
    def f(x, n):
        out = []
        while (n := n - 1) > 0:
            if n % 2:
                out.append(x * n)
        return out, n, (1 < n < 3) or None, not n

    return f, [(x34(), 4)]


@program
def training_step():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def f(x):
        return F.mse_loss(net(x), torch.zeros(3, 1))

    return f, [(x34(),)]


@program
def autocast():
    w = torch.eye(4)

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ w
        return y, x @ w

    return f, [(x34(),)]


@program
def tensors_as_keys():
    table = defaultdict(dict)
    w = torch.ones(4)

    def f(x):
        state = table[w]
        state["n"] = state.get("n", 0) + 1
        state["sum"] = x + state.get("sum", 0)
        seen = {w, x}
        return state["sum"], state["n"], x in seen, len(table)

    return f, [(x34(),), (x34(),)]


@program
def optimizer_steps():
    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        opt.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.detach(), [p.detach().clone() for p in net.parameters()]

    return f, [(x34(),), (x34() + 1,), (x34(),)]
