"""What users get wrong, and what they are told: always a clear message, never a wrong or lost result."""

import os
import subprocess
import sys

import pytest
import torch

import braze


@pytest.mark.parametrize("value", [3, "relu", 1.5, [torch.relu], torch.ones(2)])
def test_not_a_callable(value):
    with pytest.raises(TypeError, match="expected a module, function or other callable, got"):
        braze.compile(value)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"backend": "inductr"}, "unknown backend 'inductr'. Valid: 'braze', 'eager', 'aot_eager'"),
        ({"backend": "aot-eager"}, "Did you mean 'aot_eager'"),
        ({"mode": "max_autotune"}, "Did you mean 'max-autotune'"),
        ({"options": {"recompile_limt": 3}}, "Did you mean 'recompile_limit'"),
        ({"dynamic": "yes"}, "dynamic must be None, True or False"),
    ],
)
def test_misspelt_settings_name_the_nearest(settings, hint):
    with pytest.raises(ValueError, match="braze.compile") as error:
        braze.compile(torch.relu, **settings)
    assert hint in str(error.value)


@pytest.mark.parametrize("settings", [{"dynamic": True}, {"mode": "reduce-overhead"}, {"mode": "strict"}])
def test_what_is_not_there_yet_says_so(settings):
    with pytest.raises(NotImplementedError, match="not there yet"):
        braze.compile(torch.relu, **settings)


def test_fullgraph_names_line_reason_and_advice():
    def f(x):
        y = x * 2
        print("in the middle")
        return y + 1

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(Exception, match=rf"test_bad_input\.py:{line}") as error:
        braze.compile(f, fullgraph=True)(torch.ones(2))
    assert "print" in str(error.value)


def special_tensors():
    class Sub(torch.Tensor):
        pass

    dense = torch.arange(6.0).view(2, 3)
    yield "sparse", dense.to_sparse()
    yield "quantized", torch.quantize_per_tensor(dense, 0.1, 10, torch.quint8)
    yield "nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    yield "subclass", dense.as_subclass(Sub)


@pytest.mark.parametrize(("name", "tensor"), list(special_tensors()), ids=lambda v: v if isinstance(v, str) else "")
def test_special_tensors_give_eagers_result(name, tensor):
    def f(x):
        return x.dequantize() if x.is_quantized else x + x

    got, want = braze.compile(f)(tensor), f(tensor)
    assert type(got) is type(want) and got.layout == want.layout
    if name == "nested":
        assert all(torch.equal(a, b) for a, b in zip(got.unbind(), want.unbind(), strict=True))
    else:
        assert torch.equal(got.to_dense() if name == "sparse" else got, want.to_dense() if name == "sparse" else want)


def run_fresh(code, **env):
    """Run code in a fresh process; returns (exit status, output with errors)."""
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, **env), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


SIMPLE = (
    "import torch, braze; f = lambda x: (x * 2 + 1).relu(); x = torch.linspace(-2, 2, 1000)\n"
    "assert torch.equal(braze.compile(f)(x), f(x)); print('right')"
)


def test_no_compiler(tmp_path):
    status, text = run_fresh(SIMPLE, PATH=str(tmp_path), CXX="", BRAZE_CACHE_DIR=str(tmp_path / "c"), BRAZE_STRICT="0")
    assert status == 0 and "right" in text and "compiler" in text


@pytest.mark.parametrize("script", ["exit 1", "kill -SEGV $$"], ids=["failing", "crashing"])
def test_broken_compiler(tmp_path, script):
    compiler = tmp_path / "c++"
    compiler.write_text(f'#!/bin/sh\ncase "$1" in --version|-dumpversion) echo fake 1.0; exit 0;; esac\n{script}\n')
    compiler.chmod(0o755)
    status, text = run_fresh(SIMPLE, CXX=str(compiler), BRAZE_CACHE_DIR=str(tmp_path / "c"), BRAZE_STRICT="0")
    assert status == 0 and "right" in text and ".cpp" in text


def test_disabled_by_environment():
    code = "import torch, braze; f = lambda x: x + 1; assert braze.compile(f) is f; print('right')"
    status, text = run_fresh(code, BRAZE_DISABLE_ALL="1")
    assert status == 0 and "right" in text
