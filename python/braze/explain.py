"""What Braze did with a function: typed, and as text with ``str(report)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from braze import _C, modules


@dataclass(frozen=True)
class Break:
    """A place that runs in Python: where, why, and what to change."""

    file: str
    line: int
    function: str
    reason: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.reason}" + (
            f" ({self.advice})" if self.advice else ""
        )


@dataclass(frozen=True)
class Kernel:
    """One generated kernel: ``source`` is what the compiler got, ``summary`` its text as kernel IR."""

    name: str
    source: str
    summary: str
    origins: str


@dataclass(frozen=True)
class Recompile:
    """A call that no compiled entry served, and the guard that refused it."""

    where: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Everything known of one compiled callable.

    ``compiled_share`` is the share of eager's aten calls (forward and backward) that plans executed since
    :func:`braze.reset`; ``plan_us`` the time in microseconds of the plan alone, replayed from C++ on the last inputs;
    ``phases`` seconds of compile time by phase; ``fallbacks`` how often a segment ran in eager, by reason;
    ``unsupported`` operators, builtins and opcodes met that are not captured or have no generated code.
    """

    graphs: int = 0
    breaks: list[Break] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    kernels_total: int = 0
    guards: list[str] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    compiled_share: float = 0.0
    plan_us: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    fallbacks: dict[str, int] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    bytes_held: int = 0

    def __str__(self) -> str:
        lines = [
            f"{self.graphs} graphs, {len(self.kernels)} kernels ({self.kernels_total} launches), "
            f"{len(self.breaks)} breaks, {self.compiled_share:.0%} of aten calls compiled, plan {self.plan_us:.1f} us"
        ]
        lines += [f"  break      {b}" for b in self.breaks]
        lines += [f"  recompile  {r.where}: {r.reason}" for r in self.recompiles]
        lines += [f"  fallback   {n} x {reason}" for reason, n in self.fallbacks.items()]
        lines += [f"  kernel     {k.name}: {k.origins}" for k in self.kernels]
        lines += [f"  phase      {name} {seconds * 1e3:.1f} ms" for name, seconds in self.phases.items()]
        lines += [f"  not met    {u}" for u in self.unsupported]
        return "\n".join(lines)


def explain(f: Any) -> Report:
    """Report on a compiled module or function (what ``braze.compile`` returned).

    Raises:
        TypeError: ``f`` was not compiled by Braze.
    """
    call = modules.call_of(f) if isinstance(f, modules.CompiledModule) else f
    if isinstance(f, nn.Module) and not isinstance(f, modules.CompiledModule):
        call = getattr(f, "_compiled_call_impl", None) or f  # compile(..., inplace=True)
    data = _C.explain(call)
    data["breaks"] = [Break(**b) for b in data.get("breaks", [])]
    data["kernels"] = [Kernel(**k) for k in data.get("kernels", [])]
    data["recompiles"] = [Recompile(**r) for r in data.get("recompiles", [])]
    return Report(**data)
