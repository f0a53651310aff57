"""Outputs, writes, levels and refusals of a trace."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from braze import _C


def kinds(traced: Any) -> list[tuple[str, int]]:
    """(kind, index) of every output."""
    assert traced.poison == ""
    return [(o["kind"], o["index"]) for o in traced.outputs]


def test_outputs_are_inputs_views_and_values() -> None:
    x = torch.randn(4, 6)
    traced = _C.trace(lambda a: (a, a[1], a.t(), (y := a * 3.0), y[2]), [x])
    assert kinds(traced) == [
        ("input", 0),
        ("view_of_input", 0),
        ("view_of_input", 0),
        ("graph", 0),
        ("view_of_output", 3),
    ]
    assert [o["offset"] for o in traced.outputs] == [0, 6, 0, 0, 12]


def test_view_offsets_count_from_the_viewed_tensor() -> None:
    x = torch.randn(8, 6)[2:]
    traced = _C.trace(lambda a: a[1], [x])
    assert traced.outputs[0]["offset"] == 6


def test_sibling_views_get_a_hidden_base() -> None:
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with context():
            traced = _C.trace(lambda a: (a * 2).chunk(2), [torch.randn(4, 6)])
            assert kinds(traced) == [("view_of_output", 2), ("view_of_output", 2), ("graph", 0)]


def test_detached_alias_comes_second_to_its_source() -> None:
    x = torch.randn(4, requires_grad=True)
    traced = _C.trace(lambda a: ((y := a * 2).detach(), y), [x])
    assert kinds(traced) == [("view_of_output", 1), ("graph", 0)]
    assert [o["requires_grad"] for o in traced.outputs] == [False, True]


def test_wrapped_numbers_stay_scalars() -> None:
    assert "aten.mul.Tensor(%p0, 2.5)" in _C.trace(lambda a: a * 2.5, [torch.randn(3)]).text


def test_literals_are_fresh() -> None:
    def program(a: torch.Tensor) -> Any:
        c = torch.tensor([1.0, 2.0])
        c += 1
        return a * c, c, torch.tensor(2.5)

    traced = _C.trace(program, [torch.ones(2)])
    assert traced.constants == [False, True]
    for _ in range(2):
        values = traced.run(traced.primals)
        assert [v.tolist() for v in values] == [[2.0, 3.0], [2.0, 3.0], 2.5]


def test_writes_become_values() -> None:
    def program(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a[1].add_(b)
        b.copy_(a[0])
        return a.sum()

    a, b = torch.randn(3, 4), torch.randn(4)
    traced = _C.trace(program, [a, b])
    values = traced.run([a, b])
    assert sorted(i for i, _ in traced.mutations) == [0, 1]
    ea, eb = a.clone(), b.clone()
    total = program(ea, eb)
    written = {i: values[o] for i, o in traced.mutations}
    assert torch.equal(values[0], total)
    assert torch.equal(written[0], ea)
    assert torch.equal(written[1], eb)


def test_unwritten_aliases_are_two_inputs() -> None:
    b = torch.randn(4)
    assert _C.trace(lambda x, y: x + y.sum(), [b, b.view(2, 2)]).poison == ""


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x, y: x.add_(1) + y.sum(), "shares memory"),
        (lambda x, y: x.resize_(2), "as_strided on an input|sizes or storage"),
        (lambda x, y: x.t_(), "sizes or storage"),
        (lambda x, y: x.requires_grad_() * 2, "requires_grad of an input"),
        (lambda x, y: x.nonzero(), "data-dependent"),
        (lambda x, y: x[x > 0], "data-dependent"),
        (lambda x, y: x.sum().item(), "value|data-dependent"),
        (lambda x, y: 1 if x.sum() > 0 else 2, "value|data-dependent"),
        (lambda x, y: torch.unique(x), "data-dependent"),
        (lambda x, y: torch.rand(3, generator=torch.Generator()), "argument of type|no input|Generator"),
        (lambda x, y: x + torch.ones(4).as_subclass(torch.Tensor) + OUTSIDE, "no input of the capture"),
        (lambda x, y: x.to_sparse(), "no meta kernel"),
    ],
)
def test_refusals(program: Any, reason: str) -> None:
    b = torch.randn(4)
    assert re.search(reason, _C.trace(program, [b, b.view(2, 2)]).poison)


OUTSIDE = torch.ones(4)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.eye(3).to_sparse(),
        torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.quint8),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        torch.ones(3, device="meta"),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.ones(3).to(torch.float8_e4m3fn),
    ],
)
def test_tensors_that_no_trace_holds(tensor: torch.Tensor) -> None:
    assert _C.trace(lambda a: a, [tensor]).poison != ""


def test_written_history_is_refused() -> None:
    leaf = torch.randn(4, requires_grad=True)
    assert "grad mode" in _C.trace(lambda a: a.mul_(2).sum(), [leaf * 1]).poison
    assert "requires_grad" in _C.trace(lambda a, w: a.mul_(w).sum(), [torch.ones(4), leaf]).poison

    def step(w: torch.Tensor) -> None:
        with torch.no_grad():
            w.mul_(0.5)

    assert _C.trace(step, [leaf]).mutations == [(0, 0)]


def test_fakes_look_like_their_reals() -> None:
    leaf = torch.nn.Parameter(torch.randn(3, 4).t())
    seen: list[Any] = []

    def look(p: torch.Tensor, inner: torch.Tensor, b: torch.Tensor) -> None:
        seen.append((type(p), p.requires_grad, p.is_leaf, p.stride(), p.dtype, p.device))
        seen.append((type(inner), inner.requires_grad, inner.is_leaf, inner.grad_fn is None))
        seen.append((isinstance(b, torch.nn.Buffer), b.is_contiguous()))

    _C.trace(look, [leaf, leaf * 2, torch.nn.Buffer(torch.ones(2))])
    assert seen[0] == (torch.nn.Parameter, True, True, (1, 4), torch.float32, torch.device("cpu"))
    assert seen[1] == (torch.Tensor, True, False, False)
    assert seen[2] == (True, True)


def test_levels_follow_outputs_that_depend_on_outputs() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> Any:
        h = x * w
        logits = h.sin()
        return (logits * h.cos()).sum(), logits, (x * 2).exp()

    x, w = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    traced = _C.trace(program, [x, w])
    assert traced.levels == [
        ([1, 2], [("primal", 0), ("primal", 1)]),
        ([0], [("primal", 0), ("primal", 1), ("output", 1)]),
    ]
    zero = torch.zeros(4)
    values = traced.run([x.detach(), w.detach(), zero, zero, torch.ones(())])
    loss, logits, _ = program(x, w)
    eager = torch.autograd.grad(loss, [logits, x, w])
    low, top = values[3:5], values[5:8]
    assert [v.tolist() for v in low] == [[0.0] * 4] * 2
    torch.testing.assert_close(top[2], eager[0])
    again = traced.run([x.detach(), w.detach(), top[2], zero, torch.ones(())])
    torch.testing.assert_close(again[3] + again[5], eager[1])
    torch.testing.assert_close(again[4] + again[6], eager[2])


def test_unreached_inputs_have_no_gradient() -> None:
    x, w = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    traced = _C.trace(lambda a, b: (a * 2 + b.detach()).sum(), [x, w])
    assert traced.levels == [([0], [("primal", 0)])]


def test_no_levels_without_grad() -> None:
    x = torch.randn(4, requires_grad=True)
    with torch.no_grad():
        assert _C.trace(lambda a: a * 2, [x]).levels == []


def test_native_state_is_restored() -> None:
    def program(a: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_autocast_enabled("cpu", True)
        torch.use_deterministic_algorithms(True)
        return a * torch.ones(4)

    traced = _C.trace(program, [torch.randn(4)])
    assert traced.outputs[0]["type"] == "f64[4]"
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32
    assert not torch.is_autocast_enabled("cpu")
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.is_autocast_cache_enabled()
    with pytest.raises(ZeroDivisionError):
        _C.trace(lambda a: 1 / 0, [torch.randn(4)])
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]


def test_foreach_is_recorded_per_tensor() -> None:
    def program(*ps: torch.Tensor) -> None:
        with torch.no_grad():
            torch._foreach_add_(ps, 1.0)

    tensors = [torch.randn(3), torch.randn(4)]
    traced = _C.trace(program, tensors)
    assert "_foreach" not in traced.text
    values = traced.run(tensors)
    assert all(torch.equal(values[o], tensors[i] + 1) for i, o in traced.mutations)
    assert len(traced.mutations) == 2


def test_errors_are_eager_errors() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        _C.trace(lambda a: a.sum(dim=5), [torch.randn(4)])
    with pytest.raises(RuntimeError, match="2, ?3|2x3"):
        _C.trace(lambda a: a @ a, [torch.randn(2, 3)])


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_convolution_has_the_layout_of_its_library(layout: torch.memory_format) -> None:
    """The meta kernel would say row-major, and would save statistics of the wrong size."""
    x, w = torch.randn(2, 3, 4, 4).to(memory_format=layout), torch.randn(8, 3, 3, 3)
    mean, var = torch.zeros(8), torch.ones(8)
    seen = []

    def program(a: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        y = torch.batch_norm(torch.conv2d(a, w), None, None, mean, var, False, 0.1, 1e-5, False)
        seen.append(y.stride())
        return y

    with torch.no_grad():
        traced = _C.trace(program, [x, w, mean, var])
        assert traced.poison == ""
        program(x, w, mean, var)
    assert seen[0] == seen[-1]
    assert traced.text.count("f32[0]") == 2, traced.text
