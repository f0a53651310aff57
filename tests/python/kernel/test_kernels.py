"""Kernels of each class against eager: values on odd sizes, every dtype, special numbers; error against float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from graph_text import record
from torch import Tensor

from braze import _C

SIZES = [1, 7, 31, 128, 1021]


def check(f: Callable[..., object], *args: object, exact: bool = False, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Records f, runs the compiled graph, compares with eager; floating results also against f on float64."""
    text, inputs, eager = record(f, *args)
    got = _C.GraphExecutable(text, backend="braze")(inputs)
    assert len(got) == len(eager)
    wide = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
    truth = [t for t in torch.utils._pytree.tree_flatten(f(*wide))[0] if isinstance(t, Tensor)]
    for k, (a, b) in enumerate(zip(got, eager, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride(), f"result {k}: {text}"
        if exact or not b.is_floating_point():
            assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num()), (
                f"result {k}: {text}"
            )
            assert torch.equal(a.signbit() | a.isnan(), b.signbit() | b.isnan()), f"result {k}: {text}"
            continue
        assert torch.equal(a.isnan(), b.isnan()), f"result {k} has other nans: {text}"
        assert torch.equal(a.isinf(), b.isinf()), f"result {k} has other infinities: {text}"
        ok = a.isfinite()
        t = truth[k][ok].double()
        ours, theirs = (a[ok].double() - t).abs(), (b[ok].double() - t).abs()
        allowed = 4 * theirs.max() + atol + rtol * t.abs() if ok.any() else 0
        if a.dtype in (torch.float16, torch.bfloat16):
            allowed = allowed + torch.finfo(a.dtype).eps * t.abs()
        assert (ours <= allowed).all(), f"result {k}: error {ours.max():.1e}, eager {theirs.max():.1e}: {text}"


def number(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    if dtype == torch.bool:
        return torch.rand(*sizes) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(-100 if dtype != torch.uint8 else 0, 100, sizes, dtype=dtype)
    return torch.randn(*sizes).to(dtype)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def test_normalised_rows_are_read_at_the_row_before() -> None:
    """A shifted read of a map over a reduction: the reduction exists at its own row only."""

    def shifted(x: Tensor) -> Tensor:
        h = F.layer_norm(x, (x.shape[-1],))
        return F.pad(h, (0, 0, 1, -1)) * 0.5 + h

    def rolled(x: Tensor) -> Tensor:
        h = F.softmax(x, -1)
        return h.roll(1, 0) + h.flip(0)

    check(shifted, number(2, 16, 64))
    check(rolled, number(16, 64))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_map_and_reductions(n: int, dtype: torch.dtype) -> None:
    check(lambda a, b: (a * b + 1).relu(), number(3, n, dtype=dtype), number(3, n, dtype=dtype))
    check(lambda a, b: (a * b).relu().sum(1), number(5, n, dtype=dtype), number(5, n, dtype=dtype), rtol=1e-4)
    check(lambda a: (a.sum(0), a.mean(), a.amax(1), a.amin(0), a.sum()), number(70, n, dtype=dtype), rtol=1e-4)
    check(lambda a: F.softmax(a, -1), number(5, n, dtype=dtype))
    check(lambda a: F.log_softmax(a, -1), number(5, n, dtype=dtype), rtol=1e-4)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_integers(n: int, dtype: torch.dtype) -> None:
    a, b = number(3, n, dtype=dtype), number(3, n, dtype=dtype)
    check(lambda a, b: (a + b * 3 - 7, -a, a.abs(), a & b, a | b, a ^ b, ~a), a, b)
    check(lambda a, b: (torch.maximum(a, b), torch.minimum(a, b), a == b, a < b, a >= 3), a, b)
    check(lambda a: (a.sum(1), a.sum(0), a.amax(1), a.amin(0), a.argmax(1), a.argmin(0)), a)
    check(lambda a: (a.float() * 2, a.double(), a.bool(), a.to(torch.int8), a.long(), a.to(torch.uint8)), a)
    check(lambda a: (a // 3, a % 5, a % -3, a // -7), a)


@pytest.mark.parametrize("n", SIZES)
def test_booleans(n: int) -> None:
    a, b = number(4, n, dtype=torch.bool), number(4, n, dtype=torch.bool)
    x, y = number(4, n), number(4, n)
    check(lambda a, b: (a & b, a | b, a ^ b, ~a, a.any(1), a.all(0), a.sum(1), a.any(), a.all()), a, b)
    check(lambda a, x, y: (torch.where(a, x, y), x.masked_fill(a, -1.0), a.float(), a * x), a, x, y)
    check(lambda x, y: ((x > y) & (x < 1), (x > 0).sum(0), x.isnan(), x.isinf()), x, y)


@pytest.mark.parametrize("n", SIZES)
def test_norms(n: int) -> None:
    x, w, b = number(6, n), number(n), number(n)
    check(lambda x, w, b: F.layer_norm(x, (n,), w, b), x, w, b, rtol=1e-4, atol=1e-5)
    check(lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w, x, w)
    check(lambda x: (x.var(1, correction=0), x.std(0, correction=0)), x, rtol=1e-4)


@pytest.mark.parametrize("n", [3, 31, 1021])
def test_cross_entropy(n: int) -> None:
    check(lambda x, t: F.cross_entropy(x, t), number(40, n), torch.randint(0, n, (40,)), rtol=1e-4)
    t = torch.randint(0, n, (40,))
    t[3] = -100
    check(lambda x, t: F.cross_entropy(x, t, reduction="sum"), number(40, n), t, rtol=1e-4)


@pytest.mark.parametrize("n", [16, 31, 100])
def test_views(n: int) -> None:
    x, y = number(n, 40), number(40, n)
    check(lambda x, y: x.t() + y, x, y)
    check(lambda x: x.t().contiguous(), x)
    check(lambda x: (x[:, ::2] * 2, x[1:] - x[:-1], x.view(-1)[3:] + 1), x)
    check(lambda x: x.view(n, 5, 8).permute(2, 0, 1).contiguous() * 2, x)
    check(lambda x, y: torch.cat([x, x * 2, y.t()], 1), x, y)
    check(lambda x: (F.pad(x, (1, 2)), x.flip(0), torch.roll(x, 3, 1), x.tril(), x.expand(3, n, 40) + 1), x)
    check(lambda x: (x.view(n, 40).sum(0), (x * 2).view(n * 40).view(n // 1, 40).sum(0)), x)
    check(lambda x: x.reshape(n, 8, 5).sum(1), x)
    check(lambda x: x.reshape(n, 8, 5).softmax(1), x)


def test_gathers_and_scatters() -> None:
    w, i = number(50, 33), torch.randint(0, 50, (4, 9))
    check(lambda w, i: F.embedding(i, w) * 2, w, i)
    check(lambda w, i: w[i], w, i)
    check(lambda w, i: w.gather(0, i[:, :9]), w, torch.randint(0, 50, (4, 9)))
    check(lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 50, -1, False), number(4, 9, 33), i)
    check(lambda w, i, v: w.index_add(0, i, v), w, i[0], number(9, 33))
    check(lambda w, i, v: w.index_put((i,), v, accumulate=True), w, i[0], number(9, 33))
    check(lambda w, i: w.scatter_add(0, i, w[:4, :9]), w, i)


def test_special_numbers() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([1.0, nan, -inf, 0.0, -0.0, inf, -1.5, 2.5, 1e-40, -1e-40, 3e38, 0.5, -0.5]).repeat(3)
    y = torch.tensor([nan, 2.0, -inf, -0.0, 0.0, -3.0, 2.0]).repeat(6)[: x.numel()]
    check(
        lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), x.sign(), x.floor(), x.round()),
        x,
        y,
        exact=True,
    )
    check(
        lambda x, y: (x.clamp(-1, 1), x.relu(), x.abs(), x == y, x < y, x != x, x.trunc(), x.ceil(), -x),
        x,
        y,
        exact=True,
    )
    check(lambda x, y: (x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")), x, y, exact=True)
    z = x.masked_fill(x == 3e38, 1e30)  # eager overflows in gelu(3e38)
    check(lambda x: (x.exp(), x.tanh(), x.sigmoid(), x.erf(), F.gelu(x), F.silu(x), x.log(), x.sqrt(), x.rsqrt()), z)
    check(lambda x: (x.amax(), x.amin(), x.argmax(), x.argmin()), x, exact=True)
    check(
        lambda x: (x.view(3, 13).amax(1), x.view(3, 13).amax(0), x.view(3, 13).argmax(1), x.view(3, 13).argmin(0)),
        x,
        exact=True,
    )
    check(lambda x: (x.half().float(), x.bfloat16().float()), x, exact=True)


@pytest.mark.parametrize(
    "f",
    "exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc "
    "erfinv lgamma digamma exp2 sqrt rsqrt reciprocal".split(),
)
def test_functions(f: str) -> None:
    x = torch.linspace(-4, 4, 999)
    check(lambda x: getattr(torch, f)(x) if hasattr(torch, f) else getattr(torch.special, f)(x), x)
    check(lambda x: getattr(torch, f)(x), x.double())


def test_large() -> None:
    x = number(512, 2048)
    check(lambda x: (x.sum(0), x.sum(1), x.sum(), (x * 2).mean()), x, rtol=1e-4)
    check(lambda x: (x.amax(0), x.argmax(0), x.any(), x.prod(0)), x.clamp(0.9, 1.1), rtol=1e-3)
    check(lambda x, g: (x * g, (x * g).sum(0)), x, number(512, 2048), rtol=1e-4)
    check(lambda x: F.softmax(x.view(8, 131072), -1), x)
