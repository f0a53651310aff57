"""Random tensor programs as Python source, eager against compiled: values, strides, gradients, mutated arguments.

    pytest tests/fuzz                       20 fixed seeds
    FUZZ_SEEDS=1000:2000 pytest tests/fuzz  others

A failure prints the program; lines can be deleted by hand until it is small (every line stands alone).
"""

import os
import random

import pytest
import torch

import braze

UNARY = (
    "relu sigmoid tanh exp neg abs sin cos sqrt_abs square gelu silu softmax log_softmax layer_norm cumsum clone "
    "contiguous flip roll floor round sign reciprocal1 log1p_abs erf softplus leaky_relu expm1"
).split()
BINARY = "+ - * / maximum minimum where atan2 pow_abs".split()
REDUCE = "sum mean amax amin prod var std logsumexp norm argmax any_pos all_pos".split()
VIEW = "t unsqueeze squeeze reshape expand slice step select permute chunk pad cat stack index repeat".split()
DTYPES = ["float32", "float32", "float32", "float64", "bfloat16", "int64"]


class Writer:
    """Writes one program; every value is a float tensor variable with at most three dimensions."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.names, self.count = [], [], 0
        self.dtype = self.rng.choice(DTYPES)

    def new(self, text):
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {text}")
        self.names.append(name)

    def pick(self):
        return self.rng.choice(self.names[-6:] + self.names[:2])

    def unary(self, x):
        op = self.rng.choice(UNARY)
        special = {
            "sqrt_abs": f"({x}.abs() + 0.5).sqrt()",
            "log1p_abs": f"{x}.abs().log1p()",
            "reciprocal1": f"1 / ({x}.abs() + 1)",
            "exp": f"({x} * 0.1).exp()",
            "expm1": f"({x} * 0.1).expm1()",
            "softmax": f"F.softmax({x}, -1)",
            "log_softmax": f"F.log_softmax({x}, -1)",
            "layer_norm": f"F.layer_norm({x}, {x}.shape[-1:])",
            "gelu": f"F.gelu({x})",
            "silu": f"F.silu({x})",
            "softplus": f"F.softplus({x})",
            "leaky_relu": f"F.leaky_relu({x}, 0.1)",
            "cumsum": f"{x}.cumsum(-1) * 0.3",
            "flip": f"{x}.flip(0)",
            "roll": f"{x}.roll(1, -1)",
        }
        self.new(special.get(op, f"{x}.{op}()"))

    def binary(self, x, y):
        op = self.rng.choice(BINARY)
        y = f"fit({y}, {x})"
        if op in "+-*":
            self.new(f"{x} {op} {self.rng.choice([y, y, str(self.rng.choice([2, 0.5, -1]))])}")
        elif op == "/":
            self.new(f"{x} / ({y}.abs() + 1)")
        elif op == "where":
            self.new(f"torch.where({x} > {y}, {x}, {y} * 2)")
        elif op == "pow_abs":
            self.new(f"({x}.abs() + 0.1) ** {self.rng.choice(['2', '0.5', '3', '-1'])}")
        else:
            self.new(f"torch.{op}({x}, {y})")

    def reduce(self, x):
        op, dim = self.rng.choice(REDUCE), self.rng.choice(["-1", "0"])
        keep = self.rng.choice(["True", "False"])
        special = {
            "argmax": f"{x}.argmax({dim}).to({x}.dtype)",
            "any_pos": f"({x} > 0.5).any({dim}).to({x}.dtype)",
            "all_pos": f"({x} > -9).all({dim}).to({x}.dtype)",
            "norm": f"{x}.norm(dim={dim}, keepdim={keep})",
            "prod": f"({x} * 0.5).prod({dim}, keepdim={keep})",
            "var": f"{x}.var({dim}, correction=0, keepdim={keep})",
            "std": f"({x} * {x}.new_tensor(1.0) + torch.arange({x}.shape[{dim}]).sum()).var({dim}, correction=0)",
        }
        self.new("at_least_1d(" + special.get(op, f"{x}.{op}({dim}, keepdim={keep})") + ")")

    def view(self, x):
        op = self.rng.choice(VIEW)
        special = {
            "t": f"{x}.transpose(0, -1)",
            "unsqueeze": f"small({x}.unsqueeze(0))",
            "squeeze": f"at_least_1d({x}.squeeze(0))",
            "reshape": f"{x}.reshape(-1)",
            "expand": f"small({x}.unsqueeze(0).expand(2, *{x}.shape))",
            "slice": f"{x}[..., : max({x}.shape[-1] - 1, 1)]",
            "step": f"{x}[..., ::2]",
            "select": f"at_least_1d({x}[0])",
            "permute": f"{x}.permute(*reversed(range({x}.dim())))",
            "chunk": f"{x}.chunk(2, -1)[0]",
            "pad": f"F.pad({x}, (1, 2), value=0.5)",
            "cat": f"torch.cat([{x}, {x} * 2], -1)",
            "stack": f"small(torch.stack([{x}, {x} + 1]))",
            "index": f"{x}[torch.tensor([0, -1, 0])]",
            "repeat": f"{x}.repeat(*([1] * ({x}.dim() - 1)), 2)",
        }
        self.new(special[op])

    def in_place(self, x):
        self.lines.append(f"{x} = {x}.clone()")
        self.lines.append(self.rng.choice([f"{x}.mul_(0.5)", f"{x}[..., 0] = 0.25", f"{x}[0].add_(1)", f"{x} += 1"]))

    def loop(self, x):
        self.lines.append(f"for i in range({self.rng.randint(1, 3)}): {x} = {x} * 0.9 + i * 0.1")

    def mutate_argument(self):
        self.lines.append(self.rng.choice(["b.mul_(1.5)", "b[0] = 0.125", "b.copy_(b.flip(0))"]))

    def write(self):
        self.names = ["a", "b"]
        for _ in range(self.rng.randint(4, 14)):
            kind = self.rng.random()
            if kind < 0.3:
                self.unary(self.pick())
            elif kind < 0.55:
                self.binary(self.pick(), self.pick())
            elif kind < 0.7:
                self.reduce(self.pick())
            elif kind < 0.9:
                self.view(self.pick())
            elif kind < 0.94:
                self.in_place(self.rng.choice(self.names[2:] or ["a"])) if len(self.names) > 2 else None
            elif kind < 0.98:
                self.loop(self.pick())
            else:
                self.mutate_argument()
        outputs = self.rng.sample(self.names[2:], min(3, len(self.names) - 2)) + [self.names[-1]]
        body = "\n    ".join([*self.lines, f"return {', '.join(outputs)},"])
        return f"def program(a, b):\n    {body}\n"


def at_least_1d(x):
    return x if x.dim() else x.reshape(1)


def small(x):
    return x if x.dim() <= 3 else x[0]


def fit(y, x):
    """y made to broadcast against x."""
    if y.shape[-1] == x.shape[-1]:
        return y[0] if y.dim() > 1 else y
    return y.flatten()[0]


def arguments(seed, dtype):
    rng = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    shape = rng.choice([(3, 4), (5, 7), (2, 3, 5), (1, 6), (17,), (4, 33), (2, 1, 3)])
    make = lambda: (torch.randn(shape, generator=g, dtype=torch.float64) * 2).to(getattr(torch, dtype))
    return make(), make()


def run(fn, args, train):
    a, b = (t.clone() for t in args)
    if train:
        a.requires_grad_()
    outs = list(fn(a, b))
    grads = []
    if train:
        loss = sum((o.double() * (i + 1)).sum() for i, o in enumerate(outs) if o.requires_grad)
        if isinstance(loss, torch.Tensor) and loss.requires_grad:
            loss.backward()
        grads = [a.grad]
    return outs, grads, b


TOLERANCE = {"float32": (2e-4, 2e-4), "float64": (1e-9, 1e-9), "bfloat16": (5e-2, 5e-2), "int64": (1e-6, 1e-6)}


def seeds():
    low, high = (int(v) for v in os.environ.get("FUZZ_SEEDS", "0:20").split(":"))
    return range(low, high)


@pytest.mark.parametrize("seed", seeds())
def test_random_program(seed):
    import torch.nn.functional as F

    writer = Writer(seed)
    source = writer.write()
    scope = {"torch": torch, "F": F, "fit": fit, "small": small, "at_least_1d": at_least_1d}
    exec(source, scope)
    program, args = scope["program"], arguments(seed, writer.dtype)
    train = writer.dtype != "int64"
    try:
        want = run(program, args, train)
    except Exception as error:  # not every random program is one that PyTorch accepts
        with pytest.raises(type(error)):
            run(braze.compile(program), args, train)
        return
    compiled = braze.compile(program)
    rtol, atol = TOLERANCE[writer.dtype]
    for _ in range(2):
        got = run(compiled, args, train)
        for part in (0, 1, 2):
            for x, y in zip(got[part], want[part]) if part < 2 else [(got[2], want[2])]:
                assert (x is None) == (y is None), source
                if x is None:
                    continue
                assert x.dtype == y.dtype and x.shape == y.shape, f"seed {seed}\n{source}"
                if part == 0:
                    same = [(p, q) for n, p, q in zip(x.shape, x.stride(), y.stride()) if n > 1 and p != q]
                    assert not same, f"seed {seed}: strides {x.stride()} {y.stride()}\n{source}"
                scale = max(1.0, y.detach().double().abs().nan_to_num(0, 0, 0).max().item() if y.numel() else 1.0)
                torch.testing.assert_close(
                    x.detach(), y.detach(), rtol=rtol, atol=atol * scale, equal_nan=True,
                    msg=lambda m: f"seed {seed} part {part}: {m}\n{source}",
                )  # fmt: skip
