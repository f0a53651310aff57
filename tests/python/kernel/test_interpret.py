"""Kernel IR in its interpreter against eager: tells a fault of tiling from one of the emitter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from graph_text import record

from braze import _C


@pytest.fixture
def interpreted() -> Iterator[None]:
    _C.set_option("interpret_kernels", "1")
    yield
    _C.set_option("interpret_kernels", "0")


def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(F.gelu(x @ w), (w.shape[1],))


def trained(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    w = w.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(normed(x, w), torch.arange(x.shape[0]) % w.shape[1])
    return [loss, *torch.autograd.grad(loss, w)]


X = torch.randn(9, 21, generator=torch.Generator().manual_seed(0))
W = torch.randn(21, 37, generator=torch.Generator().manual_seed(1))
I = torch.arange(-8, 9)  # noqa: E741
PROGRAMS: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "pointwise": (lambda x: torch.sigmoid(x) * x.abs().sqrt() - 1, (X,)),
    "rows": (lambda x: (x.softmax(1), x.sum(1), x.var(1)), (X,)),
    "columns": (lambda x: (x.sum(0), x.amax(0), x.argmin(0)), (X,)),
    "total": (lambda x: (x.mean(), x.prod(), x.max()), (X,)),
    "layer_norm": (normed, (X, W)),
    "backward": (trained, (X, W)),
    "half": (lambda x: (x * 3 + 1).tanh(), (X.half(),)),
    "bfloat16": (lambda x: (x * 3 + 1).float().exp().bfloat16(), (X.bfloat16(),)),
    "masks": (lambda x: torch.where(x > 0, x, x.double()).masked_fill(x < -1, 2), (X,)),
    "integers": (lambda i: (i // 3, i % 5, i.float() / 2, i.to(torch.uint8)), (I,)),
    "cat": (lambda x: torch.cat([x, x.flip(0), x[:2]]), (X,)),
    "transposed": (lambda x, w: x.t() + w[:, :9], (X, W)),
    "gather": (lambda x: (x[torch.tensor([3, 1, 3])], F.embedding(torch.tensor([[1, 8]]), x)), (X,)),
    "scatter": (lambda x: torch.zeros(5, 21).index_add(0, torch.arange(9) % 5, x), (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted_kernels_equal_eager_and_compiled(name: str, interpreted: None) -> None:
    f, args = PROGRAMS[name]
    text, inputs, eager = record(f, *args)
    got = _C.GraphExecutable(text, backend="braze")(inputs)
    _C.set_option("interpret_kernels", "0")
    compiled = _C.GraphExecutable(text, backend="braze")(inputs)
    for a, b, c in zip(got, eager, compiled, strict=True):
        torch.testing.assert_close(a, b.detach(), equal_nan=True)
        torch.testing.assert_close(a, c, equal_nan=True)
