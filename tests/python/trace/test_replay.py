"""The recorded forward and backward, run operator by operator, equal eager."""

from __future__ import annotations

from typing import Any

import helpers
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from braze import _C


class ConvNet(nn.Module):
    """In-place operations, views of an intermediate, batch norm, a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8 * 4 * 4, 10)
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        y = torch.relu_(self.norm(self.conv(x))).clone()
        y[:, 0].mul_(2)
        return self.linear(F.max_pool2d(y, 2).flatten(1))


def cross_entropy(model: nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(x), target)


def test_convnet_with_writes_views_and_buffers() -> None:
    torch.manual_seed(1)
    x, target = torch.randn(2, 3, 8, 8), torch.tensor([1, 2])
    traced = helpers.check_training(ConvNet().train(), cross_entropy, (x, target), tolerance=1e-6)
    assert "native_batch_norm(" not in traced.text
    assert len(traced.mutations) == 4  # running mean and variance, number of batches, the counter


def test_convnet_in_eval_mode() -> None:
    torch.manual_seed(1)
    x, target = torch.randn(2, 3, 8, 8), torch.tensor([1, 2])
    traced = helpers.check_training(ConvNet().eval(), cross_entropy, (x, target), tolerance=1e-6)
    assert len(traced.mutations) == 1


def test_dropout_draws_eager_numbers() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.1)).train()
    traced = helpers.check_training(model, lambda m, x: m(x).pow(2).sum(), (torch.randn(4, 8),))
    assert traced.draws_random


def test_vmap() -> None:
    torch.manual_seed(1)

    def program(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(lambda row: model(row).relu().sum())(x).sum()

    helpers.check_training(nn.Linear(8, 8), program, (torch.randn(4, 8),), tolerance=1e-6)


def test_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500, use_cache=False)
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
    model = transformers.GPT2LMHeadModel(config).train()
    ids = torch.randint(0, 500, (2, 16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        helpers.check_training(model, lambda m, i: m(input_ids=i, labels=i).loss, (ids,))


class Block(nn.Module):
    """A residual block as in ResNet."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.b = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.nb(self.b(F.relu(self.na(self.a(x)), inplace=True))) + x, inplace=True)


def test_resnet() -> None:
    torch.manual_seed(1)
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    model = nn.Sequential(stem, nn.MaxPool2d(3, 2, 1), Block(8), Block(8), head).train()
    x, target = torch.randn(2, 3, 32, 32), torch.tensor([3, 4])
    helpers.check_training(model, cross_entropy, (x, target), tolerance=1e-5)


def test_autocast_casts_are_nodes() -> None:
    torch.manual_seed(1)

    def program(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().pow(2).mean()

    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    traced = helpers.check_training(model, program, (torch.randn(4, 8),))
    assert "_to_copy" in traced.text


def test_checkpoint_is_refused() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def program(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False).sum()

    traced, _ = helpers.trace_model(model, program, (torch.randn(4, 8),))
    assert "saved-tensor hooks" in traced.poison


def test_python_backward_is_refused() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g * 2

    x = torch.randn(4, requires_grad=True)
    assert "the backward runs Python" in _C.trace(lambda a: Double.apply(a).sum(), [x]).poison
    assert "the backward runs Python" in _C.trace(hooked, [x]).poison


def hooked(a: torch.Tensor) -> torch.Tensor:
    b = a * 2
    b.register_hook(lambda g: g * 3)
    return b.sum()


def test_no_grad_leaves_autograd_in_a_replay_too() -> None:
    def program(a: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            b = a.sin()
        return (a * b).sum()

    a = torch.randn(5, requires_grad=True)
    traced = _C.trace(program, [a])
    (replayed,) = traced.run_forward([a])
    (ours,) = torch.autograd.grad(replayed, a)
    (eager,) = torch.autograd.grad(program(a), a)
    torch.testing.assert_close(ours, eager, rtol=0, atol=0)
    _, gradients = helpers.run_step(traced, [torch.ones(())])
    torch.testing.assert_close(gradients[0, "primal", 0], eager, rtol=0, atol=0)


def test_batch_norm_differentiates_in_a_replay() -> None:
    norm = nn.BatchNorm1d(4).train()
    x = torch.randn(6, 4, requires_grad=True)

    def program(mean: torch.Tensor, var: torch.Tensor, w: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> Any:
        return F.batch_norm(x, mean, var, w, b, training=True).pow(3).sum()

    tensors = [norm.running_mean, norm.running_var, norm.weight, norm.bias, x]
    traced = _C.trace(program, tensors)
    before = norm.running_mean.clone()
    replayed = traced.run_forward(tensors)[0]
    assert torch.equal(norm.running_mean, before)
    (ours,) = torch.autograd.grad(replayed, x)
    (eager,) = torch.autograd.grad(program(*tensors), x)
    torch.testing.assert_close(ours, eager)
