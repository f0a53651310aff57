"""Writes shape_cases.inc: operators on small tensors and the types that eager PyTorch gives (run by hand, CPU).

    python tests/unit/graph/make_shape_cases.py

Each case is a graph of one node in Braze's text form, whose result types are what eager returned.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import torch

DTYPES = {
    torch.bool: "b8",
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.complex64: "c64",
    torch.complex128: "c128",
}
FORMATS = {
    torch.contiguous_format: "contiguous_format",
    torch.preserve_format: "preserve_format",
    torch.channels_last: "channels_last",
}


def type_text(t: torch.Tensor) -> str:
    """The type with its strides always written out."""
    sizes, strides = list(t.shape), list(t.stride())
    return f"{DTYPES[t.dtype]}{sizes}" + ("{" + str(strides)[1:-1] + "}" if sizes else "")


class Case:
    """One call; tensors among the arguments become inputs."""

    def __init__(self, name: str, *args: object, **kwargs: object) -> None:
        packet, _, overload = name.partition(".")
        self.op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        self.name, self.args, self.kwargs = name, args, kwargs
        self.inputs: list[str] = []

    def value(self, v: object, kind: str) -> str:
        if isinstance(v, torch.Tensor):
            self.inputs.append(f"%x{len(self.inputs)}: {type_text(v)}")
            return f"%x{len(self.inputs) - 1}"
        if v is None:
            return "none"
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, float):
            return str(v)
        if isinstance(v, str):
            return f'"{v}"'
        if isinstance(v, torch.dtype):
            return DTYPES[v]
        if isinstance(v, torch.memory_format):
            return FORMATS[v]
        if isinstance(v, list | tuple):
            if not v and "Tensor" in kind:
                return "tensors[]"
            return "[" + ", ".join(self.value(x, kind) for x in v) + "]"
        return str(v)

    def text(self) -> str:
        """The graph; a result named %error if eager raises: then the rule must not answer."""
        schema = self.op._schema
        parts = []
        for i, a in enumerate(schema.arguments):
            if i < len(self.args):
                v = self.args[i]
            elif a.name in self.kwargs:
                v = self.kwargs[a.name]
            else:
                continue
            is_list = str(a.type).startswith("List[int]") or str(a.type) == "List[int]"
            if is_list and isinstance(v, int):
                v = [v]
            parts.append(f"{a.name}={self.value(v, str(a.type))}")
        try:
            result = self.op(*self.args, **self.kwargs)
        except (RuntimeError, IndexError, TypeError, NotImplementedError, ValueError):
            results = "%error: f32[]"
        else:
            as_list = isinstance(result, list)
            flat = list(result) if isinstance(result, list | tuple) else [result]
            names = ["none" if r is None else f"%r{i}: {type_text(r)}" for i, r in enumerate(flat)]
            results = ", ".join(names)
            if as_list:
                results = f"[{results}]"
        head = f"graph @f({', '.join(self.inputs)}) -> () {{\n"
        return f"{head}  {results} = aten.{self.name}({', '.join(parts)})\n  return }}"


def layouts(*shape: int, dtype: torch.dtype = torch.float32) -> Iterator[torch.Tensor]:
    """Tensors of one shape in the layouts that programs meet."""
    base = torch.zeros(shape, dtype=dtype)
    yield base
    if len(shape) >= 2:
        yield torch.zeros(shape[::-1], dtype=dtype).permute(*reversed(range(len(shape))))
        yield torch.zeros((*shape[:-1], shape[-1] * 2), dtype=dtype)[..., ::2]
        yield torch.zeros((1, *shape[1:]), dtype=dtype).expand(shape)
        yield (
            torch.zeros((shape[0], 1), dtype=dtype).expand(shape)
            if len(shape) == 2
            else base.transpose(0, 1).contiguous().transpose(0, 1)
        )
    if len(shape) == 4:
        yield base.contiguous(memory_format=torch.channels_last)


def some(*shape: int) -> list[torch.Tensor]:
    return list(layouts(*shape))


UNARY_SAME = (
    "neg abs sign floor ceil round trunc frac relu hardtanh "
    "leaky_relu elu gelu silu mish hardswish hardsigmoid softplus celu square positive"
)
UNARY_FLOAT = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin "
    "cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "sigmoid erf erfc erfinv lgamma digamma"
)
COMPARE = "eq ne lt le gt ge"


def pointwise() -> Iterator[Case]:
    shapes = [(3, 4), (2, 1, 5), (2, 3, 4, 5), (2, 1, 4, 4), (5,), ()]
    for shape in shapes:
        for x in layouts(*shape):
            for name in (
                "relu",
                "gelu",
                "silu",
                "exp",
                "tanh",
                "isinf",
                "isnan",
                "logical_not",
                "log_sigmoid_forward",
                "positive",
            ):
                yield Case(name, x)
            yield Case("mul.Tensor", x, 2.0)
            yield Case("add.Scalar", x, 2)
            yield Case("pow.Tensor_Scalar", x, 2)
            yield Case("clamp", x, 0.0, None)
            yield Case("clone", x)
            yield Case("clone", x, memory_format=torch.contiguous_format)
            yield Case("_to_copy", x, dtype=torch.float64)
            yield Case("eq.Scalar", x, 1)
            yield Case("masked_fill.Scalar", x, x > 0, 1.0)
            yield Case("threshold_backward", x, torch.zeros(shape), 0)
            yield Case("threshold_backward", torch.zeros(shape), x, 0)
            yield Case("native_dropout_backward", x, torch.zeros(shape) > 0, 2.0)
            for y in layouts(*shape):
                yield Case("add.Tensor", x, y)
                if shape not in ((3, 4), (2, 3, 4, 5)):
                    continue
                for name in (
                    "gelu_backward",
                    "tanh_backward",
                    "sigmoid_backward",
                    "silu_backward",
                    "hardswish_backward",
                    "mish_backward",
                    "hardsigmoid_backward",
                ):
                    yield Case(name, x, y)
                yield Case("hardtanh_backward", x, y, -1.0, 1.0)
                yield Case("leaky_relu_backward", x, y, 0.1, False)
                yield Case("elu_backward", x, 1.0, 1.0, 1.0, False, y)
                yield Case("softplus_backward", x, y, 1.0, 20.0)
                yield Case("where.self", torch.ones(shape, dtype=torch.bool), x, y)
                yield Case("where.self", x > 0, torch.zeros(()), y)
                yield Case("addcmul", x, y, x)
                yield Case("lerp.Scalar", x, y, 0.5)
                yield Case("mse_loss", x, y, 0)
                yield Case("mse_loss_backward", x, x, y, 0)
    for name in UNARY_SAME.split() + UNARY_FLOAT.split() + ["logical_not", "isnan", "isinf", "signbit", "bitwise_not"]:
        for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool, torch.float64):
            yield Case(name, torch.ones(2, 3, dtype=dtype))
    kinds = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.bfloat16, torch.float32, torch.float64]
    names = (
        (
            "add.Tensor sub.Tensor mul.Tensor div.Tensor atan2 maximum minimum "
            "fmax fmin floor_divide remainder.Tensor fmod.Tensor pow.Tensor_Tensor "
        )(
            "hypot logaddexp copysign.Tensor bitwise_and.Tensor "
            "bitwise_or.Tensor bitwise_xor.Tensor logical_and logical_or logical_xor"
        )
    ).split() + [f"{c}.Tensor" for c in COMPARE.split()]
    some_kinds = [torch.bool, torch.int64, torch.bfloat16, torch.float32]
    for name, (a, b) in itertools.product(names, itertools.product(kinds, kinds)):
        if name not in ("add.Tensor", "div.Tensor", "eq.Tensor", "pow.Tensor_Tensor") and not {a, b} <= set(some_kinds):
            continue
        yield Case(name, torch.ones(2, 3, dtype=a), torch.ones(3, dtype=b))
        if name in ("add.Tensor", "div.Tensor", "eq.Tensor", "pow.Tensor_Tensor"):
            yield Case(name, torch.ones(2, 3, dtype=a), torch.ones((), dtype=b))
            yield Case(name, torch.ones((), dtype=a), torch.ones((), dtype=b))
            yield Case(
                "where.self", torch.ones(2, 3, dtype=torch.bool), torch.ones(3, dtype=a), torch.ones((), dtype=b)
            )
    for a in kinds:
        x = torch.ones(2, 3, dtype=a)
        for s in (2, 2.5, True):
            for name in "add.Tensor sub.Tensor mul.Tensor div.Tensor".split():
                yield Case(name, x, s)
            for name in (
                "add.Scalar sub.Scalar rsub.Scalar mul.Scalar div.Scalar remainder.Scalar "
                "fmod.Scalar pow.Tensor_Scalar bitwise_and.Scalar bitwise_or.Scalar eq.Scalar lt.Scalar"
            ).split():
                yield Case(name, x, s)
            yield Case("pow.Scalar", s, x)
            yield Case("clamp", x, s, None)
            yield Case("clamp_min", x, s)
            yield Case("clamp_max", x, s)
            yield Case("masked_fill.Scalar", x, torch.ones(2, 3, dtype=torch.bool), s)
            yield Case("threshold", x, s, s)
            yield Case("add.Tensor", x, x, alpha=s)
            yield Case("full_like", x, s)
            yield Case("new_full", x, [2, 3], s)
        yield Case("pow.Tensor_Scalar", x, -1)
        yield Case("div.Tensor_mode", x, x, rounding_mode="floor")
        yield Case("div.Tensor_mode", x, x, rounding_mode="trunc")
        yield Case("div.Tensor_mode", x, x, rounding_mode=None)
        for name in ("gelu_backward", "tanh_backward", "threshold_backward"):
            yield Case(name, x, x, *([0] if name == "threshold_backward" else []))
        yield Case("addcmul", x, x, x)
        yield Case("addcdiv", x, x, x)
        yield Case("lerp.Scalar", x, x, 0.5)
        yield Case("clamp.Tensor", x, x, None)
        yield Case("masked_fill.Tensor", x, x > 0, torch.ones((), dtype=a))
        yield Case("native_dropout_backward", x, x > 0, 2.0)
    yield Case("add.Tensor", torch.ones(2, 3), torch.ones(4))
    yield Case("masked_fill.Scalar", torch.ones(3, 1), torch.ones(1, 4, dtype=torch.bool), 0.0)
    for x in some(2, 3, 4, 5):
        yield Case("clone", x, memory_format=torch.channels_last)
        yield Case("copy", x, torch.zeros(5))


def views() -> Iterator[Case]:
    for x in [
        *layouts(4, 6),
        *layouts(2, 3, 4),
        *layouts(2, 3, 4, 5),
        torch.zeros(1, 4),
        torch.zeros(2, 0, 3),
        torch.zeros(()),
        torch.zeros(1),
    ]:
        numel, rank = x.numel(), x.dim()
        if numel:
            for size in ([-1], [numel], [2, -1], [1, *x.shape], [*x.shape, 1], [4, 6], [2, 2, 6], [6, 4]):
                yield Case("view", x, size)
                yield Case("_unsafe_view", x, size)
        yield Case("view", x, list(x.shape))
        yield Case("t", x)
        yield Case("squeeze", x)
        for d in range(-rank - 1, rank + 1):
            yield Case("unsqueeze", x, d)
            yield Case("squeeze.dim", x, d)
            yield Case("select.int", x, d, 0)
            yield Case("select.int", x, d, -1)
            yield Case("unbind.int", x, d)
            yield Case("split.Tensor", x, 2, d)
            yield Case("chunk", x, 3, d)
            yield Case("transpose.int", x, d, 0)
            for start, end, step in ((0, 9223372036854775807, 1), (1, -1, 1), (None, 2, 2), (-3, None, 2), (5, 1, 1)):
                yield Case("slice.Tensor", x, d, start, end, step)
        yield Case("permute", x, list(reversed(range(rank))))
        yield Case("squeeze.dims", x, [0])
        yield Case("diagonal", x, 0, 0, 1)
        yield Case("diagonal", x, -1, 0, -1)
        yield Case("expand", x, [3, *x.shape])
        yield Case("expand", x, [1, *x.shape])
        yield Case("expand", x, [-1] * rank)
        yield Case("alias", x)
        yield Case("detach", x)
        if rank:
            yield Case("unfold", x, 0, 2, 1)
            yield Case("split_with_sizes", x, [1, x.shape[-1] - 1], -1)
        yield Case("as_strided", x, [1, 1], [1, 1])
    yield Case("expand", torch.zeros(3, 1), [2, 3, 4])
    yield Case("expand", torch.zeros(3, 2), [3, 4])
    yield Case("view.dtype", torch.zeros(3, 4), torch.int32)
    yield Case("view_as_complex", torch.zeros(3, 4, 2))
    yield Case("view_as_real", torch.zeros(3, 4, dtype=torch.complex64))


def reductions() -> Iterator[Case]:
    dims: list[list[int] | None] = [None, [], [0], [-1], [0, 1], [1, 1]]
    for x in [*layouts(3, 4), *layouts(2, 3, 4, 5), torch.zeros(()), torch.zeros(0, 3)]:
        for dim, keep in itertools.product(dims, (False, True)):
            yield Case("sum.dim_IntList", x, dim, keep)
            yield Case("mean.dim", x, dim, keep)
            yield Case("var.correction", x, dim, correction=1, keepdim=keep)
            yield Case("var_mean.correction", x, dim, correction=0, keepdim=keep)
            yield Case("std.correction", x, dim, correction=1, keepdim=keep)
            yield Case("linalg_vector_norm", x, 2, dim, keep)
            yield Case("any.dims", x, dim, keep)
            yield Case("nansum", x, dim, keep)
            if dim is not None:
                yield Case("amax", x, dim, keep)
                yield Case("amin", x, dim, keep)
                yield Case("logsumexp", x, dim, keep)
                yield Case("norm.ScalarOpt_dim", x, 2, dim, keep)
        for d, keep in itertools.product((0, -1, 1), (False, True)):
            for name in ("max.dim", "min.dim", "any.dim", "all.dim", "argmax", "argmin", "prod.dim_int"):
                yield Case(name, x, d, keep)
        for d in (0, -1):
            for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "count_nonzero"):
                yield Case(name, x, d)
        yield Case("argmax", x, None, False)
        for name in ("sum", "mean", "prod", "max", "min", "any", "all", "count_nonzero"):
            yield Case(name, x)
    for dtype in (torch.bool, torch.uint8, torch.int32, torch.float16, torch.float64, torch.complex64):
        x = torch.ones(3, 4, dtype=dtype)
        for name in ("sum", "mean", "prod", "max", "any", "all", "argmax", "count_nonzero"):
            yield Case(name, x)
        yield Case("sum.dim_IntList", x, [0], dtype=torch.float64)
        yield Case("sum", x, dtype=torch.int32)
        yield Case("mean", x, dtype=torch.float32)
        for name in ("amax", "logsumexp"):
            yield Case(name, x, [0])
        yield Case("max.dim", x, 0)
        yield Case("cumsum", x, 0)
        yield Case("cumsum", x, 0, dtype=torch.float32)
        yield Case("linalg_vector_norm", x, 2, [0])
        yield Case("var.correction", x, [0], correction=1)


def indexing() -> Iterator[Case]:
    i = torch.zeros(2, dtype=torch.int64)
    i2 = torch.zeros(3, 2, dtype=torch.int64)
    for x in [*layouts(4, 6), *layouts(2, 3, 4), *layouts(2, 3, 4, 5)]:
        rank = x.dim()
        for d in range(rank):
            yield Case("index_select", x, d, i)
            index = torch.zeros([2] * rank, dtype=torch.int64)
            yield Case("gather", x, d, index)
            yield Case("scatter.value", x, d, index, 1.0)
            yield Case("scatter.src", x, d, index, torch.zeros([2] * rank))
            yield Case("scatter_add", x, d, index, torch.zeros([2] * rank))
            yield Case("sort", x, d)
            yield Case("topk", x, 2, d)
            yield Case("flip", x, [d])
            yield Case("roll", x, [1], [d])
            yield Case("slice_scatter", x, torch.zeros_like(x.narrow(d, 0, 1)), d, 0, 1)
            yield Case("select_scatter", x, torch.zeros_like(x.select(d, 0)), d, 0)
            yield Case("index_add", x, d, torch.zeros(1, dtype=torch.int64), torch.zeros_like(x.narrow(d, 0, 1)))
            for y in layouts(*x.shape):
                yield Case("cat", [x, y], d)
            yield Case("stack", [x, x], d)
            for t in (i, i2, i2.t(), i2[:, :1].expand(3, 2)):
                indices: list[torch.Tensor | None] = [None] * rank
                indices[d] = t
                yield Case("index.Tensor", x, indices)
                indices[0] = i
                yield Case("index.Tensor", x, indices)
                indices[-1] = i2
                yield Case("index.Tensor", x, indices)
                yield Case("index_put", x, indices, torch.zeros(()))
        yield Case("index.Tensor", x, [x > 0])
        yield Case("index.Tensor", x, [i] * rank)
        yield Case("triu", x, 0)
        yield Case("tril", x, 1)
        yield Case("repeat", x, [2] * rank)
        yield Case("repeat", x, [2, *([1] * rank)])
        for pad in ([1, 1], [1, 1, 0, 2], [-1, 0], [0, 0], [1, -1]):
            yield Case("constant_pad_nd", x, pad, 0)
        yield Case("slice_backward", x, [7, *x.shape[1:]], 0, 0, x.shape[0], 1)
        yield Case("select_backward", x, [7, *x.shape], 0, 1)
    w = torch.zeros(10, 4)
    for t in (i, i2, torch.zeros((), dtype=torch.int64), torch.zeros(2, dtype=torch.int32)):
        yield Case("embedding", w, t)
        yield Case("embedding", torch.zeros(4, 10).t(), t)
        yield Case("embedding_dense_backward", torch.zeros(*t.shape, 4), t, 10, -1, False)
    yield Case("cat", [torch.zeros(0), torch.zeros(2, 3)], 0)
    yield Case(
        "cat", [torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64), torch.zeros(1, 3, dtype=torch.float64)], 0
    )
    yield Case("cat", [torch.zeros(2, 3), torch.zeros(2, 4)], 0)
    yield Case("cat", [torch.zeros(2, 3, dtype=torch.bool), torch.zeros(2, 3, dtype=torch.uint8)], 1)
    yield Case("reflection_pad2d", torch.zeros(2, 3, 4, 5), [1, 1, 2, 2])
    yield Case("replication_pad2d", torch.zeros(2, 3, 4, 5), [1, 1, 2, 2])
    yield Case("histc", torch.zeros(10), 5)
    yield Case("diagonal_backward", torch.zeros(3), [3, 3], 0, 0, 1)
    yield Case("unfold_backward", torch.zeros(3, 2), [4], 0, 2, 1)
    yield Case("scatter_reduce.two", torch.zeros(4), 0, i, torch.zeros(2), "sum")


def matmuls() -> Iterator[Case]:
    for a, b in itertools.product(layouts(3, 4), layouts(4, 5)):
        yield Case("mm", a, b)
        yield Case("addmm", torch.zeros(5), a, b)
    for a, b in itertools.product(layouts(2, 3, 4), layouts(2, 4, 5)):
        yield Case("bmm", a, b)
        yield Case("baddbmm", torch.zeros(2, 1, 5), a, b)
    yield Case("mm", torch.zeros(3, 4), torch.zeros(5, 4))
    yield Case("mm", torch.zeros(3, 4), torch.zeros(4, 5, dtype=torch.float64))
    yield Case("addmm", torch.zeros(3), torch.zeros(3, 4), torch.zeros(4, 5))
    yield Case("mv", torch.zeros(3, 4), torch.zeros(4))
    yield Case("dot", torch.zeros(4), torch.zeros(4))
    yield Case("addmv", torch.zeros(3), torch.zeros(3, 4), torch.zeros(4))


def factories() -> Iterator[Case]:
    yield Case("arange", 5)
    yield Case("arange", 5.5)
    yield Case("arange", 5, dtype=torch.float32)
    yield Case("arange.start", 1, 5)
    yield Case("arange.start", 5, 1)
    yield Case("arange.start_step", 0, 10, 3)
    yield Case("arange.start_step", 10, 0, -3)
    yield Case("arange.start_step", 0, 1, 0.1)
    for v in (1, 1.0, True):
        yield Case("full", [2, 3], v)
        yield Case("full", [], v)
        yield Case("scalar_tensor", v)
    for name in ("zeros", "ones", "empty.memory_format", "rand", "randn"):
        yield Case(name, [2, 0, 3])
        yield Case(name, [2], dtype=torch.float64)
    for x in [*layouts(2, 3), *layouts(2, 3, 4, 5), torch.zeros(()), torch.zeros(2, dtype=torch.int32)]:
        for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"):
            yield Case(name, x)
            yield Case(name, x, dtype=torch.float64)
        yield Case("zeros_like", x, memory_format=torch.contiguous_format)
        for name in ("new_zeros", "new_ones", "new_empty"):
            yield Case(name, x, [4, 5])
        yield Case("new_empty_strided", x, [4, 5], [1, 4])
        yield Case("bernoulli.p", x, 0.5)
        yield Case("bernoulli", x)
        yield Case("native_dropout", x, 0.5, True)
        yield Case("native_dropout", x, 0.5, False)
        yield Case("normal_functional", x)
        yield Case("uniform", x)
        yield Case("exponential", x)
    yield Case("empty_strided", [2, 3], [1, 2])
    yield Case("eye", 3)
    yield Case("linspace", 0, 1, 5)
    yield Case("randint", 10, [2, 3])
    yield Case("randint.low", 1, 10, [2, 3], dtype=torch.int32)
    yield Case("randperm", 5)
    yield Case("multinomial", torch.ones(2, 3), 2)


def norms() -> Iterator[Case]:
    for x in [*layouts(3, 4), *layouts(2, 3, 4), *layouts(2, 4, 3, 4)]:
        w = torch.ones(x.shape[-1])
        yield Case("native_layer_norm", x, [x.shape[-1]], w, w, 1e-5)
        yield Case("native_layer_norm", x, list(x.shape[-2:]), None, None, 1e-5)
        stat = torch.ones(*x.shape[:-1], 1)
        for mask in ([True, True, True], [True, False, False], [False, True, True]):
            yield Case("native_layer_norm_backward", x, x, [x.shape[-1]], stat, stat, w, w, mask)
        yield Case("_fused_rms_norm", x, [x.shape[-1]], w, 1e-5)
        for d in (0, -1):
            yield Case("_softmax", x, d, False)
            yield Case("_log_softmax", x, d, False)
            yield Case("_safe_softmax", x, d)
            for y in layouts(*x.shape):
                yield Case("_softmax_backward_data", x, y, d, torch.float32)
                yield Case("_log_softmax_backward_data", x, y, d, torch.float32)
        if x.dim() == 4:
            c = torch.ones(4)
            yield Case("native_group_norm", x, c, c, 2, 4, 12, 2, 1e-5)
            s = torch.ones(2, 2)
            yield Case("native_group_norm_backward", x, x, s, s, c, 2, 4, 12, 2, [True, True, True])
            yield Case("native_group_norm_backward", x, x, s, s, None, 2, 4, 12, 2, [True, False, False])
    half = torch.ones(3, 4, dtype=torch.bfloat16)
    yield Case("native_layer_norm", half, [4], torch.ones(4), torch.ones(4), 1e-5)
    yield Case("native_layer_norm", half, [4], torch.ones(4, dtype=torch.bfloat16), None, 1e-5)
    yield Case("_softmax", half, 1, False)
    yield Case("_softmax", torch.ones(3, 4, dtype=torch.int64), 1, False)
    x, target = torch.ones(3, 4), torch.zeros(3, dtype=torch.int64)
    for reduction in (0, 1, 2):
        yield Case("nll_loss_forward", x, target, None, reduction, -100)
        grad = torch.ones(3) if reduction == 0 else torch.ones(())
        yield Case("nll_loss_backward", grad, x, target, None, reduction, -100, torch.ones(()))
        for name in ("mse_loss", "smooth_l1_loss"):
            yield Case(name, x, x, reduction)
        yield Case("binary_cross_entropy", x, x, None, reduction)
        yield Case("binary_cross_entropy_with_logits", x, x, None, None, reduction)
    yield Case("smooth_l1_loss_backward", torch.ones(()), x, x, 1, 1.0)


def libraries() -> Iterator[Case]:
    for x in [*layouts(2, 4, 8, 8), torch.zeros(2, 1, 8, 8), torch.zeros(1, 4, 1, 1)]:
        c = x.shape[1]
        for w in (
            torch.zeros(6, c, 3, 3),
            torch.zeros(6, c, 1, 1),
            torch.zeros(6, c, 3, 3).contiguous(memory_format=torch.channels_last),
        ):
            for stride, pad in ((1, 1), (2, 0)):
                args = ([stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1)
                case = Case("convolution", x, w, torch.zeros(6), *args)
                yield case
                try:
                    y = case.op(x, w, torch.zeros(6), *args)
                except RuntimeError:
                    continue
                for mask in ([True, True, True], [False, True, True]):
                    yield Case("convolution_backward", torch.zeros(y.shape), x, w, [6], *args, mask)
        yield Case("convolution", x, torch.zeros(c, 6, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [0, 0], 1)
        p = torch.ones(c)
        yield Case("_native_batch_norm_legit_functional", x, p, p, p, p, True, 0.1, 1e-5)
        yield Case("_native_batch_norm_legit_functional", x, p, p, p, p, False, 0.1, 1e-5)
        yield Case("_native_batch_norm_legit.no_stats", x, p, p, True, 0.1, 1e-5)
        yield Case("_native_batch_norm_legit_no_training", x, p, p, p, p, 0.1, 1e-5)
        yield Case("native_batch_norm", x, p, p, p, p, True, 0.1, 1e-5)
        yield Case("native_batch_norm_backward", x, x, p, p, p, p, p, True, 1e-5, [True, True, True])
        yield Case("max_pool2d_with_indices", x, [2, 2], [2, 2])
        yield Case("max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1], [1, 1], True)
        yield Case("avg_pool2d", x, [2, 2], [2, 2])
        yield Case("avg_pool2d", x, [3, 3], [2, 2], [1, 1], True)
        yield Case("_adaptive_avg_pool2d", x, [1, 1])
        yield Case("_adaptive_avg_pool2d", x, [3, 2])
        yield Case("_adaptive_avg_pool2d_backward", torch.zeros(*x.shape[:2], 1, 1), x)
        yield Case("upsample_nearest2d", x, [16, 16])
        yield Case("upsample_bilinear2d", x, [16, 16], False)
        yield Case("upsample_nearest2d_backward", torch.zeros(2, 4, 16, 16), [16, 16], [2, 4, 8, 8])
    x = torch.zeros(2, 4, 8)
    yield Case("convolution", x, torch.zeros(6, 4, 3), None, [1], [1], [1], False, [0], 1)
    yield Case("convolution", x, torch.zeros(6, 2, 3), None, [1], [1], [1], False, [0], 2)
    yield Case(
        "convolution_backward",
        torch.zeros(2, 6, 8),
        x,
        torch.zeros(6, 4, 3),
        [6],
        [1],
        [1],
        [1],
        False,
        [0],
        1,
        [True, True, True],
    )
    for q in layouts(2, 3, 4, 8):
        k = torch.zeros(2, 3, 5, 8)
        yield Case("_scaled_dot_product_flash_attention_for_cpu", q, k, k)
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, k)
        yield Case(
            "_scaled_dot_product_flash_attention_for_cpu_backward", torch.zeros_like(out), q, k, k, out, lse, 0.0, False
        )


def main() -> None:
    seen: dict[str, None] = {}
    for family in (pointwise, views, reductions, indexing, matmuls, factories, norms, libraries):
        for case in family():
            seen.setdefault(case.text())
    path = Path(__file__).parent / "shape_cases.inc"
    path.write_text("".join(f'R"bz({text})bz",\n' for text in seen))
    print(len(seen), "cases")


if __name__ == "__main__":
    main()
