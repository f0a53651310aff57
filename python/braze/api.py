"""``braze.compile`` and its company: what users call."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import torch

from braze import _C, modules

BACKENDS = ("braze", "eager", "aot_eager")
MODES = ("default", "reduce-overhead", "max-autotune", "strict")
OPTIONS = ("recompile_limit", "fallback_random")


def _nearest(word: str, valid: Iterable[str], what: str) -> str:
    """An error text that names the value, the nearest valid one, and all of them."""
    valid = list(valid)
    near = difflib.get_close_matches(str(word), valid, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"braze.compile: unknown {what} {word!r}.{hint} Valid: {', '.join(map(repr, valid))}."


def _check(dynamic: bool | None, backend: object, mode: object, options: dict[str, Any] | None) -> None:
    """Refuse what is misspelt (ValueError) and what is not there yet (NotImplementedError)."""
    if backend not in BACKENDS:
        raise ValueError(_nearest(str(backend), BACKENDS, "backend"))
    if mode not in MODES:
        raise ValueError(_nearest(str(mode), MODES, "mode"))
    for name in options or {}:
        if name not in OPTIONS:
            raise ValueError(_nearest(name, OPTIONS, "option"))
    if dynamic not in (None, True, False):
        raise ValueError(f"braze.compile: dynamic must be None, True or False, not {dynamic!r}.")
    if (options or {}).get("fallback_random", True) is not True:
        raise NotImplementedError(
            "braze.compile: fallback_random=False is not there yet; random operators draw from eager's generators."
        )
    if dynamic is True:
        raise NotImplementedError(
            "braze.compile: dynamic=True is not there yet; leave dynamic out, every size then compiles once."
        )
    if mode != "default":
        raise NotImplementedError(f"braze.compile: mode={mode!r} is not there yet; use mode='default'.")


def compile(
    f: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "braze",
    mode: str = "default",
    options: dict[str, Any] | None = None,
    inplace: bool = False,
) -> Any:
    """Return ``f`` compiled: same results, same effects, same errors, run by generated kernels.

    Args:
        f: an ``nn.Module``, function, method or other callable. Without it, a decorator is returned.
        fullgraph: a graph break becomes an error that names the line and what to change.
        dynamic: ``None`` and ``False`` compile for the sizes met; ``True`` is not there yet.
        backend: ``"braze"`` (generated kernels), ``"eager"`` (captured graphs replayed operator by operator) or
            ``"aot_eager"`` (the same with forward and backward graphs split).
        mode: ``"default"``.
        options: ``recompile_limit`` (int), ``fallback_random`` (bool).
        inplace: for modules: compile the module itself and return it, instead of a compiled object beside it.

    Returns:
        For a module, an object that shares all its state (see :mod:`braze.modules`); else a callable with the
        signature of ``f``.

    Raises:
        TypeError: ``f`` is not callable.
        ValueError: an unknown backend, mode or option; the message names the nearest valid one.
        NotImplementedError: ``dynamic=True`` or a mode other than ``"default"``.
    """
    _check(dynamic, backend, mode, options)
    settings: dict[str, Any] = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode}
    settings["options"] = options
    if f is None:
        return lambda g: compile(g, inplace=inplace, **settings)
    if not callable(f):
        raise TypeError(f"braze.compile: expected a module, function or other callable, got {type(f).__name__}.")
    if _C.disabled():
        return f
    if not isinstance(f, torch.nn.Module):
        return _C.compile_callable(f, settings)
    original = modules.original_of(f)
    if inplace:
        original._compiled_call_impl = _C.compile_callable(original._call_impl, settings)
        return original
    return modules.wrap(original, lambda m: _C.compile_callable(m, settings))


def disable(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a callable: inside compiled functions its calls run in Python. Also a decorator."""
    return torch.compiler.disable(f)  # type: ignore[no-any-return]


def is_compiling() -> bool:
    """True while Braze captures the caller; ``torch.compiler.is_compiling()`` is answered alike."""
    return False


def stats() -> dict[str, int]:
    """Counters since the last :func:`reset`.

    ``graphs`` (captured segments compiled), ``compiles`` (captures), ``kernels`` (distinct, generated),
    ``eager_fallbacks``, ``internal_errors``, ``pending`` (background work).
    """
    return _C.stats()


def reset() -> None:
    """Forget everything compiled and all counters; compiled callables compile again on their next call."""
    _C.reset()


def list_backends() -> list[str]:
    """The names that ``compile(backend=...)`` takes."""
    return list(BACKENDS)
