"""Nanoseconds per guard check on models of many modules: untouched, and after typical stores.

    PYTHONPATH=build/site python benchmarks/guards.py [MODULES]

Time is this thread's processor time, the least of several runs. ``deep300`` is the design's target: about 6 us on
Python 3.11 (a chain of 300 modules with some 300 parameters).
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/python/guard"))

import torch
from guard_reader import Reader, read_module
from torch import nn


class Scale(nn.Module):
    """One parameter, no children: the smallest module that people write."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale x of any shape [..., 8]."""
        return x * self.gain


def guarded(model: nn.Module, x: torch.Tensor) -> Reader:
    """Guards of a call of the whole model on one tensor."""
    r = Reader(model, x)
    read_module(r.slot(0))
    r.slot(1).tensor().fetch()
    start = time.thread_time()
    r.build()
    built = time.thread_time()
    assert r.check() is not None
    checked = time.thread_time()
    print(
        f"  {len(r.guards.texts())} guards; build {1e3 * (built - start):.1f} ms, "
        f"first check {1e6 * (checked - built):.0f} us"
    )
    return r


def clock_cost() -> float:
    """Nanoseconds that reading the clock adds to a measurement of one check."""
    r = Reader(1)
    r.slot(0).const()
    r.build()
    return min(r.guards.nanoseconds([1], repeats=1) for _ in range(200))


def measure(name: str, model: nn.Module, x: torch.Tensor) -> None:
    """Print one block."""
    print(name)
    r = guarded(model, x)
    warm = min(r.guards.nanoseconds([model, x], repeats=100) for _ in range(20))
    print(f"  warm                          {warm:8.0f} ns")
    clock = clock_cost()
    cold = bytearray(64 << 20)
    rows = {
        "a new tensor as argument": lambda: None,
        "model.counter += 1": lambda: setattr(model, "counter", getattr(model, "counter", 0) + 1),
        "caches evicted": lambda: cold.__setitem__(slice(None, None, 64), bytes(len(cold) // 64)),
    }
    for row, before in rows.items():
        y = [x]
        if row.startswith("a new"):
            before = lambda y=y: y.__setitem__(0, torch.ones_like(x))  # noqa: E731
        times = []
        for _ in range(20 if row.startswith("caches") else 200):
            before()
            times.append(r.guards.nanoseconds([model, y[0]], repeats=1))
        print(f"  {row:<30}{min(times) - clock:8.0f} ns")


def main() -> None:
    """Measure."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    x = torch.ones(4, 8)
    measure("one module", Scale(), x)
    measure(
        f"deep{count}: a chain of modules with one parameter each", nn.Sequential(*[Scale() for _ in range(count)]), x
    )
    measure(
        f"{count // 2} linear layers, two parameters each",
        nn.Sequential(*[nn.Linear(8, 8) for _ in range(count // 2)]),
        x,
    )


if __name__ == "__main__":
    main()
