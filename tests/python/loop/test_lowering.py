"""Every family of lowerings against eager: traced, lowered, compiled, run; dtype, strides, values, NaN and errors."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from braze import _C

Tensors = tuple[torch.Tensor, ...]


def check(function: Callable[..., Tensors], *inputs: torch.Tensor) -> None:
    """One graph with all results of the function; each result equals eager's."""
    expected = function(*inputs)
    traced = _C.trace(function, list(inputs))
    assert traced.poison == ""
    run = _C.GraphExecutable(traced.text, backend="braze")
    actual = run(list(traced.primals))
    assert run.kernels()
    assert len(actual) >= len(expected)
    wrong = []
    for k, (a, e) in enumerate(zip(actual, expected, strict=False)):
        tolerance = 2e-2 if e.dtype in (torch.bfloat16, torch.float16) else 2e-5
        close = a.dtype == e.dtype and torch.allclose(a, e, rtol=tolerance, atol=tolerance / 10, equal_nan=True)
        if not close or a.stride() != e.stride():
            wrong.append(f"result {k}: {a.stride()} {a.dtype}\n{a}\n{e.stride()} {e.dtype}\n{e}")
    assert not wrong, "\n".join(wrong)


SPECIAL = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, 0.5, -3.0, 3.0, 7.5, -25.0, 25.0, 1e-20, float("inf"), -float("inf"), float("nan")]
)


def inputs_of(dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.cat([SPECIAL, torch.randn(50, generator=generator)]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_activations(dtype: torch.dtype) -> None:
    """Activation functions on special values too."""

    def f(x: torch.Tensor) -> Tensors:
        return (
            F.relu(x),
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.silu(x),
            F.mish(x),
            F.elu(x, 1.5),
            F.celu(x, 2.0),
            F.softplus(x),
            F.hardtanh(x),
            F.hardswish(x),
            F.hardsigmoid(x),
            F.leaky_relu(x, 0.1),
            F.logsigmoid(x),
            F.threshold(x, 0.5, 2.0),
            x.sigmoid(),
            x.tanh(),
        )

    check(f, inputs_of(dtype))


def test_activation_gradients() -> None:
    """The backward formulas, called as operators."""
    a = torch.ops.aten

    def f(g: torch.Tensor, x: torch.Tensor) -> Tensors:
        return (
            a.threshold_backward(g, x, 0),
            a.gelu_backward(g, x),
            a.gelu_backward(g, x, approximate="tanh"),
            a.silu_backward(g, x),
            a.mish_backward(g, x),
            a.tanh_backward(g, x),
            a.sigmoid_backward(g, x),
            a.hardtanh_backward(g, x, -1, 1),
            a.leaky_relu_backward(g, x, 0.1, False),
            a.elu_backward(g, 1.5, 1.0, 1.0, False, x),
            a.softplus_backward(g, x, 1, 20),
            a.hardswish_backward(g, x),
            a.hardsigmoid_backward(g, x),
        )

    x = torch.cat([torch.tensor([0.0, 1.0, -1.0, 3.0, -3.0, 25.0]), torch.randn(58)])
    check(f, torch.randn(64), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
def test_arithmetic(dtype: torch.dtype) -> None:
    """Promotion, alpha, division modes, powers, comparisons."""
    x = torch.arange(-8, 9).to(dtype)
    y = torch.tensor([3, -3, 2, -2, 1, 7, -7, 5, 4, -1, 2, 3, -4, 6, -5, 2, 3]).to(dtype)
    i = torch.arange(17)

    def f(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor) -> Tensors:
        return (
            x + y,
            torch.add(x, y, alpha=2),
            x - y,
            3 - x,
            x * y,
            x / y,
            x * 2.5,
            x + i,
            x / 3,
            torch.div(x, y, rounding_mode="trunc"),
            torch.div(x, y, rounding_mode="floor"),
            x // 3,
            x % y,
            x % -3,
            torch.fmod(x, y),
            x**2,
            x**3,
            i**5,
            x == y,
            x < 0.5,
            x >= i,
            torch.maximum(x, y),
            x.clamp(-2, 3),
            x.clamp(min=0.5),
            torch.where(x > 0, x, y),
            x.masked_fill(y > 2, 1),
            x.logical_not(),
            -x,
            x.abs(),
            x.sign(),
        )

    check(f, x, y, i)


def test_floats_on_special_values() -> None:
    """Rounding, remainders and extremes with NaN, infinities and signed zeros."""
    x = SPECIAL
    y = SPECIAL.flip(0).clone()

    def f(x: torch.Tensor, y: torch.Tensor) -> Tensors:
        return (
            x.floor(),
            x.ceil(),
            x.round(),
            x.trunc(),
            x.frac(),
            x % 0.7,
            torch.remainder(x, y),
            torch.fmod(x, y),
            torch.div(x, y, rounding_mode="floor"),
            torch.maximum(x, y),
            torch.minimum(x, y),
            torch.fmax(x, y),
            torch.fmin(x, y),
            x.isnan(),
            x.isinf(),
            x.signbit(),
            x.sign(),
            x.clamp(-1, 1),
            torch.logaddexp(x, y),
            torch.copysign(x, y),
            torch.atan2(x, y),
            x.exp(),
            x.log1p(),
            x.sqrt(),
            x.rsqrt(),
            x.erf(),
            x**0.5,
            x**-2,
        )

    check(f, x, y)


def test_views() -> None:
    """Views compose; outputs keep eager's strides."""

    def f(x: torch.Tensor) -> Tensors:
        return (
            x.transpose(0, 2) + 1,
            x.transpose(1, 2).reshape(4, -1) * 2,
            x[:, 1:5:2].exp(),
            x[1, -2] + 1,
            x.flip(1).contiguous(),
            x.roll(3, 1) + 0,
            x.repeat(2, 1, 1),
            x.diagonal(1, 1, 2) * 2,
            x.unfold(1, 3, 2) + 1,
            x.permute(2, 0, 1).flatten() + 1,
            x.unsqueeze(1).expand(4, 3, 6, 8) + 1,
            torch.cat([x[:, :3], x[:, 3:] * 2], 1),
            torch.stack([x, x + 1], 1),
            F.pad(x, (1, 2, 3, 0), value=7.0),
            F.pad(x, (-1, 2)),
            x.triu(1),
            x.tril(-1),
            x.chunk(3, 1)[1] + 1,
            x.unbind(1)[2] * 3,
        )

    check(f, torch.randn(4, 6, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_reductions(dtype: torch.dtype) -> None:
    """Sums, means, variances, norms, extremes, over some and all dimensions."""

    def f(x: torch.Tensor) -> Tensors:
        return (
            x.sum(),
            x.sum(1),
            x.sum((0, 2), keepdim=True),
            x.mean(),
            x.mean(-1, keepdim=True),
            x.amax(1),
            x.amin((0, 1)),
            x.max(),
            x.argmax(1),
            x.argmin(),
            *x.max(2),
            *x.min(0),
            x.var(1),
            x.std(),
            *torch.var_mean(x, 2, correction=0),
            x.norm(dim=1),
            torch.linalg.vector_norm(x, 1, 2),
            torch.linalg.vector_norm(x, float("inf")),
            x.logsumexp(1),
            (x > 0).any(1),
            (x > -9).all(),
            (x > 0).sum(2),
            torch.nansum(x, 1),
        )

    check(f, torch.randn(4, 6, 8).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms(dtype: torch.dtype) -> None:
    """Softmax, layer, group and batch norm."""

    def f(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Tensors:
        return (
            x.softmax(-1),
            x.softmax(1),
            x.log_softmax(-1),
            F.layer_norm(x, (8,), w, b),
            F.layer_norm(x, (6, 8)),
            F.group_norm(x, 3),
            F.rms_norm(x, (8,), w, 1e-5),
            x.float().softmax(0),
        )

    check(f, torch.randn(4, 6, 8).to(dtype), torch.randn(8).to(dtype), torch.randn(8).to(dtype))


def test_losses_and_gathers() -> None:
    """Cross entropy with ignored targets, embeddings, advanced indexing, scatters."""

    def f(x: torch.Tensor, t: torch.Tensor, w: torch.Tensor, i: torch.Tensor) -> Tensors:
        return (
            F.cross_entropy(x, t),
            F.cross_entropy(x, t, reduction="sum", weight=w),
            F.mse_loss(x, x * 2),
            F.cross_entropy(x, t, reduction="none"),
            F.smooth_l1_loss(x, x * 3),
            F.embedding(i, x),
            x.gather(1, i.unsqueeze(1)),
            x.index_select(0, i),
            x.scatter_add(1, i.unsqueeze(1), x),
            x.index_add(0, i, x[:5]),
            x.index_put((i,), x[:5], accumulate=True),
            x.scatter(1, i.unsqueeze(1), 2.0),
            torch.arange(7) + i[0],
            torch.linspace(0, 1, 11),
            torch.eye(4) + 1,
        )

    x = torch.randn(8, 10)
    check(f, x, torch.tensor([1, -100, 3, 9, 0, 0, 5, 2]), torch.rand(10), torch.tensor([0, 3, 3, 7, 1]))


def test_advanced_indexing() -> None:
    """Index tensors: negative ones, broadcast ones, apart ones; a bad one raises eager's error."""
    text = """graph @f(%x: f32[4, 6, 8], %i: i64[3], %j: i64[2, 1]) ->
        (f32[3, 6, 8], f32[4, 3, 8], f32[2, 3, 6], f32[2, 3, 8]) {
      %0: f32[3, 6, 8] = aten.index.Tensor(%x, indices=[%i])
      %1: f32[4, 3, 8] = aten.index.Tensor(%x, indices=[none, %i])
      %2: f32[2, 3, 6] = aten.index.Tensor(%x, indices=[%i, none, %j])
      %3: f32[2, 3, 8] = aten.index.Tensor(%x, indices=[%i, %j])
      return %0, %1, %2, %3 }"""
    x, i, j = torch.randn(4, 6, 8), torch.tensor([0, -1, 3]), torch.tensor([[1], [-2]])
    run = _C.GraphExecutable(text, backend="braze")
    for a, e in zip(run([x, i, j]), (x[i], x[:, i], x[i, :, j], x[i, j]), strict=True):
        assert torch.equal(a, e)
    with pytest.raises(IndexError, match="out of bounds"):
        run([x, torch.tensor([0, 4, 1]), j])
