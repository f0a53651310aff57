"""Traces a program on fakes, runs the recorded graph on real tensors, compares with eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

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
