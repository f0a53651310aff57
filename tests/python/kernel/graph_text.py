"""Graph texts of what a Python function does with tensors, written by running it: the input of kernel tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

DTYPES = {
    torch.bool: "b8", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
}  # fmt: skip


def type_text(t: torch.Tensor) -> str:
    """``f32[4, 8]{1, 4}``; strides only if not contiguous."""
    text = f"{DTYPES[t.dtype]}[{', '.join(map(str, t.shape))}]"
    return text if t.is_contiguous() else text + "{" + ", ".join(map(str, t.stride())) + "}"


class Recorder(TorchDispatchMode):
    """Every aten call becomes a node; tensors that no node made become inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[int, str] = {}
        self.alive: list[torch.Tensor] = []
        self.inputs: list[torch.Tensor] = []
        self.nodes: list[str] = []

    def name(self, t: torch.Tensor) -> str:
        if id(t) not in self.names:
            self.names[id(t)] = f"p{len(self.inputs)}"
            self.inputs.append(t)
            self.alive.append(t)
        return "%" + self.names[id(t)]

    def define(self, t: torch.Tensor | None) -> str:
        if t is None:
            return "none"
        self.names[id(t)] = f"v{len(self.alive)}"
        self.alive.append(t)
        return f"%{self.names[id(t)]}: {type_text(t)}"

    def arg(self, a: object) -> str:
        if isinstance(a, torch.Tensor):
            return self.name(a)
        if isinstance(a, (list, tuple)):
            return "[" + ", ".join(map(self.arg, a)) + "]"
        if isinstance(a, torch.dtype):
            return DTYPES[a]
        if a is None or isinstance(a, bool):
            return str(a).lower()
        if isinstance(a, float):
            return {float("inf"): "inf", float("-inf"): "-inf"}.get(a, repr(a))
        if isinstance(a, torch.device):
            return "cpu"
        if isinstance(a, torch.memory_format):
            return str(a).removeprefix("torch.")
        if isinstance(a, torch.layout):
            return "strided"
        return f'"{a}"' if isinstance(a, str) else str(a)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        given = {p.name: a for p, a in zip(func._schema.arguments, args, strict=False)} | kwargs
        texts = [f"{name}={self.arg(a)}" for name, a in given.items()]
        out = func(*args, **kwargs)
        results = out if isinstance(out, (list, tuple)) else [out]
        if not all(isinstance(t, torch.Tensor | None) for t in results):
            return out
        left = ", ".join(self.define(t) for t in results)
        if isinstance(out, list):
            left = f"[{left}]"
        name = str(func) if func._overloadname != "default" else str(func).removesuffix(".default")
        self.nodes.append(f"  {left} = {name}({', '.join(texts)})")
        return out


def record(f: Callable[..., object], *args: object) -> tuple[str, list[torch.Tensor], list[torch.Tensor]]:
    """Returns the graph text, its input tensors and the outputs that eager gave."""
    recorder = Recorder()
    for a in tree_flatten(args)[0]:
        if isinstance(a, torch.Tensor):
            recorder.name(a)
    with recorder:
        outputs: Sequence[torch.Tensor] = [t for t in tree_flatten(f(*args))[0] if isinstance(t, torch.Tensor)]
    head = ", ".join(f"%p{k}: {type_text(t)}" for k, t in enumerate(recorder.inputs))
    names = ["%" + recorder.names[id(t)] for t in outputs]
    types = ", ".join(type_text(t) for t in outputs)
    body = "\n".join(recorder.nodes)
    text = f"graph @f({head}) -> ({types}) {{\n{body}\n  return {', '.join(names)} }}\n"
    return text, [t.detach() for t in recorder.inputs], list(outputs)
