"""The recorded forward and backward, run operator by operator, equal eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from braze import _C

Tensors = Sequence[torch.Tensor]


def slots_of(model: nn.Module) -> list[tuple[dict[str, Any], str, torch.Tensor]]:
    """Every parameter and buffer with the dictionary that holds it."""
    return [
        (holder, name, tensor)
        for module in model.modules()
        for holder in (module._parameters, module._buffers)
        for name, tensor in holder.items()
        if tensor is not None
    ]


@contextmanager
def replaced(slots: Sequence[tuple[dict[str, Any], str, torch.Tensor]], by: dict[int, Any]) -> Iterator[None]:
    """The model's tensors replaced by fakes, for the time of the trace."""
    try:
        for holder, name, tensor in slots:
            holder[name] = by[id(tensor)]
        yield
    finally:
        for holder, name, tensor in slots:
            holder[name] = tensor


def trace_model(model: nn.Module, f: Callable[..., Any], args: Tensors) -> tuple[Any, list[torch.Tensor]]:
    """Traces f(model, *args); gives the trace and the model's distinct tensors, which are its first primals."""
    slots = slots_of(model)
    own = list({id(t): t for _, _, t in slots}.values())

    def program(*fakes: torch.Tensor) -> Any:
        by = {id(t): fake for t, fake in zip(own, fakes, strict=False)}
        with replaced(slots, by):
            return f(model, *fakes[len(own) :])

    return _C.trace(program, [*own, *args]), own


def run_step(traced: Any, tangents: Tensors) -> tuple[list[Any], dict[tuple[int, str, int], torch.Tensor]]:
    """Runs the joint graph: forward outputs, and the gradients by (level, kind, index) of their edge."""
    values = traced.run([*[p.detach() for p in traced.primals], *tangents])
    gradients = iter(values[traced.forward_outputs :])
    edges = {
        (level, kind, index): next(gradients) for level, (_, ends) in enumerate(traced.levels) for kind, index in ends
    }
    return values[: traced.forward_outputs], edges


def check_training(
    model: nn.Module, f: Callable[..., torch.Tensor], args: Tensors, tolerance: float = 0.0, seed: int = 0
) -> Any:
    """One scalar loss: value, gradients and buffers as eager's (relative to the largest gradient)."""
    reference = copy.deepcopy(model)
    torch.manual_seed(seed)
    loss = f(reference, *args)
    loss.backward()
    traced, own = trace_model(model, f, args)
    assert traced.poison == ""
    assert [outputs for outputs, _ in traced.levels] == [[0]]
    torch.manual_seed(seed)
    forward, gradients = run_step(traced, [torch.ones_like(loss)])
    torch.testing.assert_close(forward[0], loss.detach(), rtol=tolerance, atol=tolerance)
    expected = dict(zip(map(id, own), unique_tensors(reference), strict=True))
    for i, tensor in enumerate(own):
        check_gradient(gradients.get((0, "primal", i)), expected[id(tensor)].grad, tolerance)
    values = dict(traced.mutations)
    for i, tensor in enumerate(own):
        if not tensor.requires_grad:
            new = forward[values[i]] if i in values else tensor
            torch.testing.assert_close(new, expected[id(tensor)], rtol=tolerance, atol=tolerance)
    return traced


def unique_tensors(model: nn.Module) -> list[torch.Tensor]:
    """Parameters and buffers in the order of slots_of, each once."""
    return list({id(t): t for _, _, t in slots_of(model)}.values())


def check_gradient(ours: torch.Tensor | None, eager: torch.Tensor | None, tolerance: float) -> None:
    """An unreached input has none in either."""
    assert (ours is None) == (eager is None)
    if ours is not None and eager is not None:
        scale = eager.abs().max().item() + 1e-3
        assert (ours - eager).abs().max().item() <= tolerance * scale


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
    traced = check_training(ConvNet().train(), cross_entropy, (x, target), tolerance=1e-6)
    assert "native_batch_norm(" not in traced.text
    assert len(traced.mutations) == 4  # running mean and variance, number of batches, the counter


def test_convnet_in_eval_mode() -> None:
    torch.manual_seed(1)
    x, target = torch.randn(2, 3, 8, 8), torch.tensor([1, 2])
    traced = check_training(ConvNet().eval(), cross_entropy, (x, target), tolerance=1e-6)
    assert len(traced.mutations) == 1


def test_dropout_draws_eager_numbers() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.1)).train()
    traced = check_training(model, lambda m, x: m(x).pow(2).sum(), (torch.randn(4, 8),))
    assert traced.draws_random


def test_vmap() -> None:
    torch.manual_seed(1)

    def program(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(lambda row: model(row).relu().sum())(x).sum()

    check_training(nn.Linear(8, 8), program, (torch.randn(4, 8),), tolerance=1e-6)


def test_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500, use_cache=False)
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
    model = transformers.GPT2LMHeadModel(config).train()
    ids = torch.randint(0, 500, (2, 16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        check_training(model, lambda m, i: m(input_ids=i, labels=i).loss, (ids,))


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
    check_training(model, cross_entropy, (x, target), tolerance=1e-5)


def test_autocast_casts_are_nodes() -> None:
    torch.manual_seed(1)

    def program(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().pow(2).mean()

    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    traced = check_training(model, program, (torch.randn(4, 8),))
    assert "_to_copy" in traced.text


def test_checkpoint_is_refused() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def program(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False).sum()

    traced, _ = trace_model(model, program, (torch.randn(4, 8),))
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
    _, gradients = run_step(traced, [torch.ones(())])
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
