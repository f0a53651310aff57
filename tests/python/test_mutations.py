"""State changed between two calls of a compiled function: the next call sees it, as eager does."""

import os
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import braze

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
sys.path.insert(0, str(Path(__file__).parent.parent / "cases/shared"))

from soundness import MUTATIONS  # noqa: E402

MAKERS = {make.__name__: make for make in MUTATIONS}


def maker(make):
    """A maker returns (function or module, what changes its state)."""
    MAKERS[make.__name__] = make
    return make


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 2))


@maker
def module_replaced():
    m = mlp()
    return m, lambda: m.__setitem__(2, nn.ReLU())


@maker
def parameter_replaced_by_another_shape():
    m = mlp()
    return m, lambda: setattr(m, "3", nn.Linear(3, 5))


@maker
def eval_mode():
    m = mlp()
    return m, m.eval


@maker
def buffer_replaced():
    m = mlp().eval()
    return m, lambda: setattr(m[1], "running_mean", torch.ones(3))


@maker
def parameters_tied():
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    return m, lambda: setattr(m[1], "weight", m[0].weight)


@maker
def forward_pre_hook():
    m = mlp()
    return m, lambda: m[2].register_forward_pre_hook(lambda mod, args: (args[0] * 2,))


@maker
def forward_patched_on_the_instance():
    m = mlp()
    return m, lambda: setattr(m[2], "forward", torch.sigmoid)


@maker
def state_loaded():
    m = mlp()
    other = {k: v * 2 for k, v in m.state_dict().items()}
    return m, lambda: m.load_state_dict(other, assign=True)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "braze"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_next_call_sees_it(name, backend):
    x = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]])
    results = []
    for wrap in (lambda f: f, lambda f: braze.compile(f, backend=backend)):
        torch.manual_seed(0)
        function, change = MAKERS[name]()
        compiled = wrap(function)
        rows = [compiled(x), compiled(x)]
        change()
        results.append([*rows, compiled(x), compiled(x + 1)])
    os.environ.pop("SND_CASE", None)
    for eager, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, eager)
        assert ours.requires_grad == eager.requires_grad


SETTINGS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_modes_around_a_call(name):
    torch.manual_seed(0)
    m = nn.Linear(3, 3)
    compiled = braze.compile(m)
    x = torch.randn(2, 3)
    for inside in (False, False, True, True, False):
        if not inside:
            ours, eager = compiled(x), m(x)
        else:
            with SETTINGS[name]():
                ours, eager = compiled(x), m(x)
        torch.testing.assert_close(ours, eager)
        assert (ours.dtype, ours.requires_grad, ours.is_inference()) == (
            eager.dtype,
            eager.requires_grad,
            eager.is_inference(),
        )


def test_default_dtype_between_calls():
    def f(x):
        return x + torch.ones(3)

    compiled = braze.compile(f)
    x = torch.zeros(3)
    assert compiled(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert compiled(x).dtype == torch.float32
