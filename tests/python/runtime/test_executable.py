"""Graph texts run by every backend against eager: values, gradients, autograd's rules, mutations, errors."""

import gc
import threading
import weakref

import pytest
import torch

from braze import _C

BACKENDS = ["braze", "aot_eager", "eager"]
PARTITIONED = ["braze", "aot_eager"]

MLP = """graph @mlp(%x: f32[4, 8], %w: f32[8, 8], %b: f32[8]) -> f32[4, 8] {
  %0: f32[4, 8] = aten.addmm(%b, %x, %w, beta=1, alpha=1)
  %1: f32[4, 8] = aten.relu(%0)
  %2: f32[4, 8] = aten.mm(%1, %w)
  %3: f32[4, 8] = aten.add.Tensor(%2, %1, alpha=1)
  return %3 }"""

SIN = """graph @sin(%x: f32[4, 8], %t: f32[4, 8]) -> (f32[4, 8], f32[4, 8]) {
  %0: f32[4, 8] = aten.sin(%x)
  %1: f32[4, 8] = aten.cos(%x)
  %2: f32[4, 8] = aten.mul.Tensor(%t, %1)
  return %0, %2 }"""

EXP = """graph @exp(%x: f32[4, 8], %t: f32[4, 8]) -> (f32[4, 8], f32[4, 8]) {
  %0: f32[4, 8] = aten.exp(%x)
  %1: f32[4, 8] = aten.mul.Tensor(%t, %0)
  return %0, %1 }"""

MUL = """graph @mul(%x: f32[3], %y: f32[3], %t: f32[3]) -> (f32[3], f32[3], f32[3]) {
  %0: f32[3] = aten.mul.Tensor(%x, %y)
  %1: f32[3] = aten.mul.Tensor(%t, %y)
  %2: f32[3] = aten.mul.Tensor(%t, %x)
  return %0, %1, %2 }"""

# y = sin(x), z = exp(y): the gradient of z flows through y's own edge.
TWO_LEVELS = """graph @levels(%x: f32[5], %ty: f32[5], %tz: f32[5]) -> (f32[5], f32[5], f32[5], f32[5]) {
  %0: f32[5] = aten.sin(%x)
  %1: f32[5] = aten.exp(%0)
  %2: f32[5] = aten.cos(%x)
  %3: f32[5] = aten.mul.Tensor(%ty, %2)
  %4: f32[5] = aten.mul.Tensor(%tz, %1)
  return %0, %1, %3, %4 }"""

# two outputs of one level: u = x * 2, v = x * 3
TWO_OUTPUTS = """graph @outputs(%x: f32[5], %tu: f32[5], %tv: f32[5]) -> (f32[5], f32[5], f32[5]) {
  %0: f32[5] = aten.mul.Tensor(%x, 2.0)
  %1: f32[5] = aten.mul.Tensor(%x, 3.0)
  %2: f32[5] = aten.mul.Tensor(%tu, 2.0)
  %3: f32[5] = aten.mul.Tensor(%tv, 3.0)
  %4: f32[5] = aten.add.Tensor(%2, %3, alpha=1)
  return %0, %1, %4 }"""

ONE_LEVEL = [([0], [("primal", 0)])]


def unary(text: str, backend: str) -> "_C.GraphExecutable":
    return _C.GraphExecutable(text, backend=backend, forward_nodes=1, forward_outputs=1, levels=ONE_LEVEL)


def mul(backend: str) -> "_C.GraphExecutable":
    levels = [([0], [("primal", 0), ("primal", 1)])]
    return _C.GraphExecutable(MUL, backend=backend, forward_nodes=1, forward_outputs=1, levels=levels)


@pytest.mark.parametrize("backend", BACKENDS)
def test_forward(backend: str) -> None:
    x, w, b = torch.randn(4, 8), torch.randn(8, 8), torch.randn(8)
    f = _C.GraphExecutable(MLP, backend=backend)
    h = torch.addmm(b, x, w).relu()
    first = f([x, w, b])[0]
    second = f([x + 1, w, b])[0]
    torch.testing.assert_close(first, h @ w + h)  # not overwritten by the second run
    h = torch.addmm(b, x + 1, w).relu()
    torch.testing.assert_close(second, h @ w + h)


@pytest.mark.parametrize("backend", BACKENDS)
def test_inputs_of_another_layout_are_taken(backend: str) -> None:
    x, w, b = torch.randn(8, 4).t(), torch.randn(8, 8).t(), torch.randn(1).expand(8)
    h = torch.addmm(b, x, w).relu()
    torch.testing.assert_close(_C.GraphExecutable(MLP, backend=backend)([x, w, b])[0], h @ w + h)


@pytest.mark.parametrize("backend", ["braze"])
def test_symbolic_sizes(backend: str) -> None:
    text = """graph @f(%x: f32[s0, 8], %w: f32[8, 8]) -> f32[s0, 8] {
      symbols s0 in [2, inf]
      %0: f32[s0, 8] = aten.mm(%x, %w)
      %1: f32[s0, 8] = aten.relu(%0)
      return %1 }"""
    f = _C.GraphExecutable(text, backend=backend)
    w = torch.randn(8, 8)
    for rows in (2, 7, 300, 2):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(f([x, w])[0], (x @ w).relu())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("text", "eager"), [(SIN, torch.sin), (EXP, torch.exp)])
def test_gradients(backend: str, text: str, eager) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    (y,) = unary(text, backend)([x])
    assert y.requires_grad
    assert not y.is_leaf
    if backend != "eager":
        assert y.grad_fn.name() == "BrazeBackward"
    torch.testing.assert_close(y, eager(x))
    for tangent in (torch.randn(4, 8), torch.randn(8, 4).t(), torch.randn(1, 1).expand(4, 8)):
        torch.testing.assert_close(
            torch.autograd.grad(y, x, tangent, retain_graph=True)[0],
            torch.autograd.grad(eager(x), x, tangent)[0],
        )
    y.sum().backward()
    y2 = unary(text, backend)([x])[0]
    y2.sum().backward()  # accumulates
    torch.testing.assert_close(x.grad, 2 * torch.autograd.grad(eager(x).sum(), x)[0])


@pytest.mark.parametrize("backend", PARTITIONED)
def test_a_second_backward_is_eagers_error(backend: str) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    (y,) = unary(SIN, backend)([x])
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


@pytest.mark.parametrize("backend", PARTITIONED)
def test_saved_tensors_are_freed_after_use(backend: str) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    h = x * 1
    (y,) = unary(SIN, backend)([h])
    saved = weakref.ref(h)
    del h
    gc.collect()
    assert saved() is not None or y.grad_fn is not None
    y.sum().backward()
    gc.collect()
    assert saved() is None


@pytest.mark.parametrize("backend", PARTITIONED)
@pytest.mark.parametrize(("text", "changed"), [(SIN, "input"), (EXP, "output")])
def test_a_saved_tensor_written_meanwhile_is_eagers_error(backend: str, text: str, changed: str) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    h = x * 1
    (y,) = unary(text, backend)([h])
    with torch.no_grad():
        (h if changed == "input" else y).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("backend", PARTITIONED)
def test_only_needed_gradients(backend: str) -> None:
    f = mul(backend)
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    (z,) = f([x, y])
    gx, gy = torch.autograd.grad(z, (x, y), torch.ones(3), retain_graph=True)
    torch.testing.assert_close(gx, y.detach())
    torch.testing.assert_close(gy, x.detach())
    torch.testing.assert_close(torch.autograd.grad(z, y, torch.ones(3), retain_graph=True)[0], x.detach())
    (z,) = f([x, y.detach()])
    z.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
    assert y.grad is None


@pytest.mark.parametrize("backend", PARTITIONED)
def test_without_inputs_that_need_gradients(backend: str) -> None:
    (y,) = _C.GraphExecutable(MLP, backend=backend)([torch.randn(4, 8), torch.randn(8, 8), torch.randn(8)])
    assert not y.requires_grad
    assert y.is_leaf


@pytest.mark.parametrize("backend", PARTITIONED)
def test_create_graph_is_refused_in_words(backend: str) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    (y,) = unary(SIN, backend)([x])
    with pytest.raises(RuntimeError, match="create_graph=True through a region compiled by braze"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


@pytest.mark.parametrize("backend", PARTITIONED)
def test_levels_make_outputs_real_edges(backend: str) -> None:
    levels = [([0], [("primal", 0)]), ([1], [("output", 0)])]
    f = _C.GraphExecutable(TWO_LEVELS, backend=backend, forward_nodes=2, forward_outputs=2, levels=levels)
    x = torch.randn(5, requires_grad=True)
    y, z = f([x])
    torch.testing.assert_close(torch.autograd.grad(z.sum(), y, retain_graph=True)[0], z.detach())
    seen = []
    y.register_hook(lambda g: seen.append(g) or g * 2)
    y.retain_grad()
    z.sum().backward()
    torch.testing.assert_close(seen[0], z.detach())
    torch.testing.assert_close(y.grad, 2 * z.detach())
    torch.testing.assert_close(x.grad, 2 * z.detach() * x.detach().cos())


@pytest.mark.parametrize("backend", PARTITIONED)
def test_undefined_tangents_stay_undefined(backend: str) -> None:
    levels = [([0, 1], [("primal", 0)])]
    f = _C.GraphExecutable(TWO_OUTPUTS, backend=backend, forward_nodes=2, forward_outputs=2, levels=levels)
    x = torch.randn(5, requires_grad=True)
    for pick, expected in ((0, 2.0), (1, 3.0)):
        outputs = f([x])
        torch.testing.assert_close(torch.autograd.grad(outputs[pick].sum(), x)[0], torch.full((5,), expected))
    u, v = f([x])
    torch.testing.assert_close(torch.autograd.grad((u + v).sum(), x)[0], torch.full((5,), 5.0))


@pytest.mark.parametrize("backend", PARTITIONED)
def test_saved_tensor_hooks_and_anomaly_mode(backend: str) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        (y,) = unary(SIN, backend)([x])
    assert packed
    with torch.autograd.detect_anomaly(check_nan=False):
        (z,) = unary(SIN, backend)([y])
        z.sum().backward()
    torch.testing.assert_close(x.grad, (x.sin().cos() * x.cos()).detach())


@pytest.mark.parametrize("backend", BACKENDS)
def test_mutations_are_committed_last(backend: str) -> None:
    text = """graph @f(%x: f32[4], %n: f32[4]) -> (f32[4], f32[4]) {
      %0: f32[4] = aten.add.Tensor(%n, 1.0, alpha=1)
      %1: f32[4] = aten.mul.Tensor(%x, %0)
      return %1, %0 }"""
    f = _C.GraphExecutable(text, backend=backend, mutations=[(1, 1)])
    x, n = torch.randn(4), torch.zeros(4)
    version = n._version
    y = f([x, n])[0]
    assert torch.equal(n, torch.ones(4))
    assert n._version == version + 1
    assert torch.equal(y, x)
    assert torch.equal(f([x, n])[0], x * 2)


@pytest.mark.parametrize("backend", PARTITIONED)
def test_a_saved_input_that_the_segment_itself_writes(backend: str) -> None:
    text = """graph @f(%n: f32[3], %w: f32[3], %t: f32[3]) -> (f32[3], f32[3], f32[3]) {
      %0: f32[3] = aten.mul.Tensor(%n, %w)
      %1: f32[3] = aten.add.Tensor(%n, 1.0, alpha=1)
      %2: f32[3] = aten.mul.Tensor(%t, %n)
      return %0, %1, %2 }"""
    levels = [([0], [("primal", 1)])]
    f = _C.GraphExecutable(text, backend=backend, forward_nodes=2, forward_outputs=2, levels=levels, mutations=[(0, 1)])
    n, w = torch.randn(3), torch.randn(3, requires_grad=True)
    before = n.clone()
    f([n, w])[0].sum().backward()
    torch.testing.assert_close(n, before + 1)
    torch.testing.assert_close(w.grad, before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_is_eagers_and_leaves_nothing_behind(backend: str) -> None:
    text = """graph @f(%i: i64[2], %w: f32[4, 3], %n: f32[4]) -> (f32[2, 3], f32[4]) {
      %0: f32[4] = aten.add.Tensor(%n, 1.0, alpha=1)
      %1: f32[2, 3] = aten.embedding(%w, %i, padding_idx=-1, scale_grad_by_freq=false, sparse=false)
      return %1, %0 }"""
    f = _C.GraphExecutable(text, backend=backend, mutations=[(2, 1)])
    w, n = torch.randn(4, 3), torch.zeros(4)
    for _ in range(2):
        with pytest.raises(IndexError, match="index out of range in self"):
            f([torch.tensor([1, 7]), w, n])
        assert n._version == 0
    assert torch.equal(f([torch.tensor([1, 3]), w, n])[0], w[[1, 3]])
    assert n._version == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_output_that_is_an_input_is_a_tensor_of_its_own(backend: str) -> None:
    f = _C.GraphExecutable("graph @f(%x: f32[4]) -> f32[4] {\n  return %x }", backend=backend)
    x = torch.randn(4)
    (y,) = f([x])
    assert y is not x
    assert y.data_ptr() != x.data_ptr()
    assert torch.equal(x, y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_value_returned_twice_is_two_tensors(backend: str) -> None:
    text = "graph @f(%x: f32[4]) -> (f32[4], f32[4]) {\n  %0: f32[4] = aten.exp(%x)\n  return %0, %0 }"
    x = torch.randn(4)
    y, z = _C.GraphExecutable(text, backend=backend)([x])
    y.add_(1)
    torch.testing.assert_close(z, x.exp())


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_threads(backend: str) -> None:
    f = _C.GraphExecutable(MLP, backend=backend)
    w, b = torch.randn(8, 8), torch.randn(8)
    wrong: list[int] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(4, 8, generator=generator)
            h = torch.addmm(b, x, w).relu()
            if not torch.allclose(f([x, w, b])[0], h @ w + h, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_what_is_reported() -> None:
    f = _C.GraphExecutable(MLP, backend="braze")
    f([torch.randn(4, 8), torch.randn(8, 8), torch.randn(8)])
    assert f.compiled_ops() == 4
    assert f.replay_seconds() > 0
    assert f.kernels()
    assert _C.GraphExecutable(MLP, backend="eager").compiled_ops() == 0
    with pytest.raises(ValueError, match="unknown backend nonsense"):
        _C.GraphExecutable(MLP, backend="nonsense")
