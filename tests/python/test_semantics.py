"""Python features, each eager and compiled: results, mutations, exceptions with their line, over several calls.

A program takes tensors and plain state and returns values; it runs on equal arguments, once plain and once
compiled, and both must agree in everything. Programs are in the style users write.
"""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import traceback
import typing

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import braze

PROGRAMS = {}


def program(*args, **kwargs):
    """Register a program with the factory of its arguments (called anew for each run)."""

    def note(fn):
        PROGRAMS[fn.__name__] = (fn, args)
        return fn

    return note


def T(*shape):
    return torch.arange(1.0, 1 + math.prod(shape)).view(shape) / 7


def same(a, b, path="result"):
    assert type(a) is type(b), f"{path}: {type(a)} {type(b)}"
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad, path
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True, msg=lambda m: f"{path}: {m}")
    elif dataclasses.is_dataclass(a) and not isinstance(a, type):
        for field in dataclasses.fields(a):
            same(getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}")
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            same(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(a, (list, tuple, collections.deque)):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{i}]")
    elif isinstance(a, type(iter([]))):
        assert list(copy.copy(a)) == list(copy.copy(b)), path
    elif isinstance(a, float) and math.isnan(a):
        assert math.isnan(b), path
    elif hasattr(a, "__dict__") and not isinstance(a, (type, enum.Enum)) and type(a).__eq__ is object.__eq__:
        same(vars(a), vars(b), f"{path}.__dict__")
    else:
        assert a == b, f"{path}: {a!r} {b!r}"


def outcome(fn, args):
    try:
        return "value", fn(*args)
    except Exception as error:
        frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
        return "error", (type(error).__name__, str(error), frames[1:])


@program(lambda: [T(3), T(3)])
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, x**2, -x, 1 - x, 2 / x, x // 0.3, x % 0.4, abs(x - y), x @ y


@program(lambda: [T(4)])
def comparisons(x):
    return x > 1 / 3, x <= 0.2, x == x, (x > 0.1) & (x < 0.5), ~(x > 0.3), (x > 0.2) | (x < 0.1)


@program(lambda: [T(3, 4), 2])
def python_numbers(x, n):
    k = n * 3 + 1
    return x * k, x + k / 2, k, [k, k * 2.5], divmod(k, 3), k << 2, k**0.5, -k // 2, bool(k), float(k), str(k)


@program(lambda: [T(2, 3, 4)])
def shapes(x):
    b, *rest = x.shape
    return (
        x.view(b, -1),
        x.size(1),
        x.dim(),
        x.numel(),
        rest,
        x.shape[-1],
        len(x),
        x.shape,
        x.stride(),
        x.is_contiguous(),
    )


@program(lambda: [T(4, 6)])
def indexing(x):
    i = torch.tensor([2, 0])
    return (
        x[0],
        x[-1],
        x[:, 1],
        x[1:3, ::2],
        x[..., None],
        x[None],
        x[i],
        x[:, i],
        x[x[:, 0] > 0.5].shape[1:],
        x[1, 2],
        x[(0, 1)],
    )


@program(lambda: [T(6)])
def in_place(x):
    y = x.clone()
    y += 1
    y.mul_(2)
    y[0] = 5.0
    y[1:3] = x[3:5]
    z = y.view(2, 3)
    z[0].add_(100)
    return y, z


@program(lambda: [T(4)])
def argument_changed_in_place(x):
    before = x.sum()
    x.add_(1)
    x[0] = -1.0
    return before, x.sum(), x


@program(lambda: [T(3), {"a": 1, "b": [1, 2]}, [T(2), T(2)]])
def containers_changed(x, table, tensors):
    table["c"] = x * 2
    table["b"].append(3)
    table["a"] += 1
    tensors.append(tensors[0] + tensors[1])
    tensors[0] = x
    del table["b"][0]
    return table, tensors, list(table), len(tensors)


@program(lambda: [T(3)])
def comprehensions(x):
    squares = [x * i for i in range(3)]
    named = {f"k{i}": s.sum() for i, s in enumerate(squares)}
    nested = [[i * j for i in range(3) if i != 1] for j in range(2)]
    return squares, named, nested, {i % 2 for i in range(5)}, tuple(s + 1 for s in squares), sum(i for i in range(4))


@program(lambda: [T(3)])
def closures(x):
    scale = 2.0
    calls = 0

    def inner(v, extra=1.0, *rest, key=None, **more):
        nonlocal calls, scale
        calls += 1
        scale += 0.5
        return v * scale + extra + sum(rest) + (key or 0) + sum(more.values())

    a = inner(x)
    b = inner(x, 2.0, 3, 4, key=5, other=6)
    return a, b, calls, scale


@program(lambda: [T(3)])
def returned_closure(x):
    y = x * 2

    def get(z=3):
        return y + z

    return get(), get(z=1)


@program(lambda: [T(3)])
def star_calls(x):
    def f(a, b, *, c):
        return a + b * c

    args, kwargs = (x, x * 2), {"c": 3}
    return f(*args, **kwargs), f(x, *[x], **{"c": 1}), [*args, x], {**kwargs, "d": 1}, (*args,)


@program(lambda: [T(3), 5])
def control_flow(x, n):
    total = x
    for i in range(n):
        if i == 1:
            continue
        if i > 3:
            break
        total = total + i
    else:
        total = total * 100
    while n > 0:
        n -= 2
        total = total - n
    return total if n < 0 else x, n, (1 if n else 2), not n, n and x, n or x


@program(lambda: [T(3)])
def exceptions_caught(x):
    log = []
    try:
        raise ValueError("one")
    except (KeyError, ValueError) as e:
        log.append(str(e))
    finally:
        log.append("finally")
    try:
        {}["missing"]
    except KeyError as e:
        log.append(repr(e))
    else:
        log.append("never")
    try:
        x.view(7)
    except RuntimeError:
        log.append("bad view")
    with contextlib.suppress(ZeroDivisionError):
        1 // 0
    return x * len(log), log


@program(lambda: [T(3)])
def exception_leaves(x):
    y = x * 2
    if y.shape[0] == 3:
        raise IndexError(f"shape {tuple(y.shape)}")
    return y


@program(lambda: [T(3), []])
def exception_leaves_from_below(x, log):
    def deep(v):
        log.append(1)
        return v.nonsense

    try:
        return deep(x)
    finally:
        log.append(2)


@program(lambda: [T(3), T(4)])
def shape_error_leaves(x, y):
    return x + y


class Mode(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


@program(lambda: [T(3), Mode.DOUBLE])
def enums(x, mode):
    return x * (2 if mode is Mode.DOUBLE else 1), mode, mode.value, mode.name, Mode.PLAIN == mode


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor
    tag: str = "pair"


Point = collections.namedtuple("Point", "x y")


class Named(typing.NamedTuple):
    value: torch.Tensor
    count: int = 1


@program(lambda: [T(3)])
def records(x):
    p = Pair(x, x * 2)
    q = dataclasses.replace(p, tag="q")
    n = Point(x + 1, 2)
    return p, q, n, n.x, n._replace(y=5), Named(x), p.left + q.right


class Counter:
    total = 0

    def __init__(self, start):
        self.start, self.items = start, []

    @property
    def doubled(self):
        return self.start * 2

    @doubled.setter
    def doubled(self, value):
        self.start = value / 2

    @classmethod
    def make(cls, n):
        return cls(n + 1)

    @staticmethod
    def helper(n):
        return n * 3

    def __call__(self, v):
        self.items.append(float(self.start))
        return v * self.start

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]

    def __contains__(self, v):
        return v in self.items

    def __eq__(self, other):
        return self.start == other.start

    def __add__(self, other):
        return Counter(self.start + other)


@program(lambda: [T(3), Counter(2.0)])
def objects(x, c):
    y = c(x)
    c.doubled = 10.0
    c.extra = "new"
    other = Counter.make(3) + 1
    return (
        y,
        c(x),
        len(c),
        c[0],
        2.0 in c,
        c.doubled,
        other.start,
        Counter.helper(2),
        c == other,
        c.items,
        vars(c)["extra"],
    )


class Base(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.lin = nn.Linear(width, width)
        nn.init.constant_(self.lin.weight, 0.1)
        nn.init.constant_(self.lin.bias, 0.2)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return self.lin(x)


class Child(Base):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.table = nn.ModuleDict({"act": nn.GELU(), "out": nn.Identity()})
        for i, layer in enumerate(self.layers):
            nn.init.constant_(layer.weight, 0.1 * (i + 1))
            nn.init.constant_(layer.bias, 0.0)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        y = super().forward(x)
        for layer in self.layers:
            y = self.table["act"](layer(y)) + x
        self.seen += 1
        return self.table["out"](y), self.steps, self.seen.clone()


@program(lambda: [Child(), T(2, 4)])
def modules(m, x):
    a = m(x)
    b = m(x)
    return a, b, m.steps, m.seen, [n for n, _ in m.named_parameters()]


@program(lambda: [T(3)])
def functional_tools(x):
    add = functools.partial(torch.add, alpha=2)
    total = functools.reduce(operator.add, [x, x, x])
    chained = list(itertools.chain([x], [x + 1]))
    pairs = [a + b for a, b in zip(chained, reversed(chained))]
    ordered = sorted([3, 1, 2], key=lambda v: -v)
    return (
        add(x, x),
        total,
        pairs,
        ordered,
        list(map(lambda v: v * 2, [1, 2])),
        list(filter(None, [0, 1])),
        max(1, 2, 3),
    )


@program(lambda: [T(3)])
def strings(x):
    name = "layer"
    return (
        f"{name}.{x.shape[0]}:{x.dim():>3}",
        name.upper(),
        "%s-%d" % (name, 3),
        "{}".format(x.dtype),
        name in "a layer",
        name[1:],
    )


@program(lambda: [T(3)])
def unpacking(x):
    (a, b), [c, *d] = (x, x + 1), [1, 2, 3]
    a, b = b, a
    first, *_, last = range(5)
    return a, b, c, d, first, last


@program(lambda: [T(4)])
def context_managers(x):
    x = x.requires_grad_(False)
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad():
        z = x * 3

    @contextlib.contextmanager
    def scaled(k):
        yield x * k

    with scaled(2) as w:
        v = w + 1
    return y, z, v, torch.is_grad_enabled()


@program(lambda: [T(4).requires_grad_()])
def gradients_inside(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x)
    return g, y.detach()


@program(lambda: [T(3)])
def prints_in_the_middle(x):
    y = x * 2
    print("value", end="")
    z = y + 1
    print("again", end="")
    return z.relu()


@program(lambda: [T(3)])
def items_in_the_middle(x):
    n = int(x.sum().item())
    if x[0] > 0:
        x = x + n
    values = x.tolist()
    return x * len(values), n, [round(v, 3) for v in values]


@program(lambda: [T(3)])
def break_below(x):
    def inner(v):
        w = v * 2
        if w.sum() > 0:
            w = w + 1
        return w - 1

    def outer(v):
        try:
            return inner(v) * inner(v + 1)
        finally:
            pass

    return outer(x) + outer(-x)


@program(lambda: [T(3)])
def break_in_loop_and_with(x):
    out = []
    with torch.no_grad():
        for i in range(3):
            x = x * 1.5
            out.append(x.max().item())
    return x, out


@program(lambda: [T(3)])
def generators(x):
    def produce(n):
        for i in range(n):
            got = yield x * i
            if got:
                return "stopped"

    return list(produce(3)), sum(v.sum() for v in produce(2)), next(produce(1)), any(i > 1 for i in range(3))


@program(lambda: [T(3), iter([1, 2, 3, 4])])
def live_iterator(x, it):
    return x * next(it), x + next(it)


GLOBAL = {"n": 1}
COUNT = 0


@program(lambda: [T(3)])
def global_state(x):
    global COUNT
    COUNT += 1
    GLOBAL["n"] = GLOBAL.get("n", 0) + 1
    result = x * COUNT + GLOBAL["n"]
    COUNT -= 1
    GLOBAL["n"] -= 1
    return result


@program(lambda: [T(3)])
def attributes_by_name(x):
    class Box:
        pass

    box = Box()
    setattr(box, "v", x)
    return (
        getattr(box, "v") + 1,
        hasattr(box, "w"),
        getattr(box, "w", 5),
        isinstance(box, Box),
        callable(x.sum),
        type(3) is int,
    )


@program(lambda: [T(2, 3)])
def aliases_of_results(x):
    y = x + 1
    v = y.view(-1)
    t = y.t()
    return y, v, t, v.data_ptr() == y.data_ptr(), t.stride(), x, x.view(3, 2)


@program(lambda: [T(2, 3)])
def match_statement(x):
    def shape_of(v):
        match v:
            case {"kind": "pair", "items": [a, b]}:
                return a + b
            case [a, b, *rest]:
                return a * b + len(rest)
            case Pair(left=l, right=r):
                return l - r
            case _:
                return x

    return shape_of({"kind": "pair", "items": [x, x]}), shape_of([x, x, 1]), shape_of(Pair(x, x * 2)), shape_of(3)


@program(lambda: [T(3)])
def walrus_and_slices(x):
    if (n := x.shape[0]) > 2:
        x = x + n
    s = slice(1, None)
    items = [1, 2, 3, 4]
    items[1:3] = [9]
    return x[s], items[s], items[::-1], n, items.index(9), items.pop(), items


@program(lambda: [T(3)])
def sets_and_ordered(x):
    d = collections.OrderedDict(a=1)
    d["b"] = x
    d.move_to_end("a")
    q = collections.deque([1, 2], maxlen=2)
    q.append(3)
    dd = collections.defaultdict(list)
    dd["k"].append(x)
    return d, q, dict(dd), {1, 2} | {3}, {1, 2} & {2}, frozenset([1]), 2 in {1, 2}


@program(lambda: [T(4, 4)])
def network_functions(x):
    y = F.layer_norm(F.gelu(F.linear(x, x)), (4,))
    return (
        F.softmax(y, -1),
        F.cross_entropy(y, torch.tensor([0, 1, 2, 3])),
        F.pad(y, (1, 1)),
        torch.cat([x, y]),
        torch.stack([x, y]),
    )


@program(lambda: [T(3)])
def factories(x):
    return (
        torch.zeros(2),
        torch.ones_like(x),
        torch.arange(3),
        torch.tensor([1.0, 2.0]),
        x.new_zeros(2),
        torch.full((2,), 3.0),
        torch.eye(2),
    )


@program(lambda: [T(4)])
def dtypes_and_devices(x):
    h = x.to(torch.bfloat16)
    return (
        h,
        h.float(),
        x.double() + 1,
        x.int(),
        x.to("cpu"),
        x.dtype,
        x.device,
        x.type(torch.int64),
        x.half() * 2,
        h.dtype.is_floating_point,
    )


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program(name, capsys):
    fn, (make,) = PROGRAMS[name]
    compiled = braze.compile(fn)
    for call in range(3):
        plain_args, compiled_args = make(), make()
        want = outcome(fn, plain_args)
        said = capsys.readouterr().out
        got = outcome(compiled, compiled_args)
        assert capsys.readouterr().out == said
        same(got, want, f"call {call}")
        for i, (a, b) in enumerate(zip(compiled_args, plain_args)):
            if not isinstance(a, nn.Module):
                same(a, b, f"argument {i}")
