"""One graph text, two ways: generated kernels against PyTorch's operators, one by one."""

import pytest
import torch

from braze import _C

TEXTS = {
    "seed": """graph @f(%a: f32[37, 130], %b: f32[37, 130]) -> f32[37] {
      %0: f32[37, 130] = aten.mul.Tensor(%a, %b)
      %1: f32[37, 130] = aten.relu(%0)
      %2: f32[37] = aten.sum.dim_IntList(%1, dim=[1], keepdim=false, dtype=none)
      return %2 }""",
    "rms_norm": """graph @f(%a: f32[37, 130], %w: f32[130]) -> f32[37, 130] {
      %0: f32[37, 130] = aten.pow.Tensor_Scalar(%a, 2)
      %1: f32[37, 1] = aten.mean.dim(%0, dim=[-1], keepdim=true, dtype=none)
      %2: f32[37, 1] = aten.add.Tensor(%1, 1e-06, alpha=1)
      %3: f32[37, 1] = aten.rsqrt(%2)
      %4: f32[37, 130] = aten.mul.Tensor(%a, %3)
      %5: f32[37, 130] = aten.mul.Tensor(%4, %w)
      return %5 }""",
    "softmax": """graph @f(%a: f32[37, 130]) -> f32[37, 130] {
      %0: f32[37, 130] = aten._softmax(%a, dim=-1, half_to_float=false)
      return %0 }""",
    "log_softmax": """graph @f(%a: f32[37, 130]) -> f32[37, 130] {
      %0: f32[37, 130] = aten._log_softmax(%a, dim=1, half_to_float=false)
      return %0 }""",
    "layer_norm": """graph @f(%a: f32[37, 130], %w: f32[130], %b: f32[130]) -> (f32[37, 130], f32[37, 1], f32[37, 1]) {
      %0: f32[37, 130], %1: f32[37, 1], %2: f32[37, 1] = aten.native_layer_norm(%a, [130], %w, %b, 1e-05)
      return %0, %1, %2 }""",
    "gelu_and_transpose": """graph @f(%a: f32[37, 130], %b: f32[130, 37]) -> f32[37, 130] {
      %0: f32[37, 130]{1, 37} = aten.t(%b)
      %1: f32[37, 130] = aten.add.Tensor(%a, %0, alpha=2)
      %2: f32[37, 130] = aten.gelu(%1, approximate="none")
      return %2 }""",
    "two_products": """graph @f(%a: f32[37, 130], %w: f32[130, 64]) -> f32[37, 64] {
      %0: f32[37, 64] = aten.mm(%a, %w)
      %1: f32[37, 64] = aten.silu(%0)
      %2: f32[37, 64] = aten.tanh(%0)
      %3: f32[37, 64] = aten.mul.Tensor(%1, %2)
      return %3 }""",
    "column_sum": """graph @f(%a: f32[37, 130]) -> (f32[130], f32[]) {
      %0: f32[130] = aten.sum.dim_IntList(%a, dim=[0], keepdim=false, dtype=none)
      %1: f32[] = aten.mean(%a, dtype=none)
      return %0, %1 }""",
    "cat_and_slice": """graph @f(%a: f32[37, 130], %b: f32[37, 130]) -> f32[37, 100] {
      %0: f32[37, 60]{130, 1} = aten.slice.Tensor(%a, dim=1, start=0, end=60, step=1)
      %1: f32[37, 40]{130, 1} = aten.slice.Tensor(%b, dim=1, start=5, end=45, step=1)
      %2: f32[37, 100] = aten.cat([%0, %1], dim=1)
      %3: f32[37, 100] = aten.exp(%2)
      return %3 }""",
    "where": """graph @f(%a: f32[37, 130], %b: f32[37, 130]) -> (f32[37, 130], b8[37, 130]) {
      %0: b8[37, 130] = aten.gt.Tensor(%a, %b)
      %1: f32[37, 130] = aten.where.self(%0, %a, %b)
      return %1, %0 }""",
    "amax_argmax": """graph @f(%a: f32[37, 130]) -> (f32[37], i64[37]) {
      %0: f32[37] = aten.amax(%a, dim=[1], keepdim=false)
      %1: i64[37] = aten.argmax(%a, dim=1, keepdim=false)
      return %0, %1 }""",
    "strided_output": """graph @f(%a: f32[37, 130]{1, 37}) -> f32[37, 130]{1, 37} {
      %0: f32[37, 130]{1, 37} = aten.exp(%a)
      return %0 }""",
    "views_of_a_result": """graph @f(%a: f32[37, 130], %w: f32[130, 64]) -> f32[64, 37]{1, 64} {
      %0: f32[37, 64] = aten.mm(%a, %w)
      %1: f32[37, 64] = aten.relu(%0)
      %2: f32[64, 37]{1, 64} = aten.t(%1)
      %3: f32[64, 64] = aten.mm(%2, %1)
      %4: f32[64, 37]{1, 64} = aten.mul.Tensor(%2, 2.0)
      return %4 }""",
}


def tensors_of(text: str) -> list[torch.Tensor]:
    """Random inputs for a text's parameters (f32 only; strides as written)."""
    generator = torch.Generator().manual_seed(7)
    head = text[text.index("(") + 1 : text.index(") ->")]
    inputs = []
    for parameter in head.split("%")[1:]:
        sizes = [int(n) for n in parameter[parameter.index("[") + 1 : parameter.index("]")].split(",")]
        t = torch.randn(sizes, generator=generator)
        if "{" in parameter:
            t = torch.randn(sizes[::-1], generator=generator).t()
        inputs.append(t)
    return inputs


@pytest.mark.parametrize("name", TEXTS)
def test_kernels_equal_operators(name: str) -> None:
    text = TEXTS[name]
    inputs = tensors_of(text)
    compiled = _C.GraphExecutable(text, backend="braze")
    expected = _C.GraphExecutable(text, backend="aot_eager")(inputs)
    for _ in range(2):
        actual = compiled(inputs)
        for a, e in zip(actual, expected, strict=True):
            torch.testing.assert_close(a, e, check_stride=True)
    assert compiled.compiled_ops() > 0


@pytest.mark.parametrize("name", ["seed", "rms_norm", "softmax", "log_softmax", "gelu_and_transpose"])
def test_one_kernel(name: str) -> None:
    assert len(_C.GraphExecutable(TEXTS[name], backend="braze").kernels()) == 1


def test_an_index_out_of_range_is_eagers_error() -> None:
    text = """graph @f(%w: f32[10, 16], %i: i64[4]) -> f32[4, 16] {
      %0: f32[4, 16] = aten.embedding(%w, %i, padding_idx=-1, scale_grad_by_freq=false, sparse=false)
      %1: f32[4, 16] = aten.relu(%0)
      return %1 }"""
    f = _C.GraphExecutable(text, backend="braze")
    w = torch.randn(10, 16)
    good = torch.tensor([0, 9, 3, 3])
    for _ in range(2):
        torch.testing.assert_close(f([w, good])[0], w[good].relu())
        with pytest.raises(IndexError):
            f([w, torch.tensor([0, 10, 3, 3])])
