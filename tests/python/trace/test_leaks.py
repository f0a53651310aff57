"""No attribute of torch.Tensor gives a value from a fake's memory: break, throw, traced, or plain metadata."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from braze import _C

PROBE = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from braze import _C

REAL = torch.full((2, 3), 12345.0)
PLAIN = (bool, int, float, complex, str, bytes)


def numbers(value):
    if isinstance(value, PLAIN):
        yield value
    elif isinstance(value, (list, tuple, set)):
        for element in value:
            yield from numbers(element)
    elif type(value).__name__ in ("ndarray", "PyCapsule", "UntypedStorage", "TypedStorage"):
        yield value


def real_value(name, args):
    try:
        value = getattr(REAL.clone(), name)
        args = tuple(REAL.clone() if a is REAL else a for a in args)
        return value(*args) if callable(value) else value
    except BaseException:
        return None


ARGUMENTS = ((), (REAL,), (0,), (0, 1), (2.0,), ((3, 2),))
METADATA = {name: [real_value(name, args) for args in ARGUMENTS] for name in sys.argv[1:]}

def probe(name, fakes, leaks):
    if _C.is_refused_attribute(name):
        return
    for i, args in enumerate(ARGUMENTS):
        args = tuple(fakes[1] if a is REAL else a for a in args)
        try:
            value = getattr(fakes[0], name)
            value = value(*args) if callable(value) else value
        except BaseException:
            continue
        for leaf in numbers(value):
            if isinstance(leaf, PLAIN) and type(METADATA[name][i]) is type(value) and METADATA[name][i] == value:
                continue
            leaks.append(f"{name}{args and '(...)'}: {type(leaf).__name__}")


for name in sys.argv[1:]:
    leaks = []
    result = _C.trace(lambda a, b: probe(name, (a, b), leaks), [REAL.clone(), REAL.clone()])
    for leak in leaks:
        print("LEAK", leak, flush=True)
    print("DONE", name, flush=True)
"""

NAMES = sorted(
    n for n in dir(torch.Tensor) if n not in {"__init_subclass__", "__subclasshook__", "__class__", "__dir__"}
)


@pytest.mark.parametrize("part", range(4))
def test_every_attribute(part: int) -> None:
    names = NAMES[part::4]
    command = [sys.executable, "-c", PROBE, *names]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    done = [line[5:] for line in result.stdout.splitlines() if line.startswith("DONE")]
    after = names[len(done)] if len(done) < len(names) else "the end"
    assert result.returncode == 0, f"crashed at {after}: {result.stderr[-1500:]}"
    leaks = [line for line in result.stdout.splitlines() if line.startswith("LEAK")]
    assert leaks == []


def test_functions_that_read_memory_throw_or_poison() -> None:
    import copy
    import pickle

    import numpy as np

    readers = [
        lambda a: np.asarray(a),
        lambda a: torch.utils.dlpack.to_dlpack(a),
        lambda a: a.tolist(),
        lambda a: a.data_ptr() and a.untyped_storage()[0],
        lambda a: bytes(a.untyped_storage()),
        lambda a: torch.equal(a, a),
        lambda a: torch.allclose(a, a),
        lambda a: float(a.sum()),
        lambda a: list(range(a.sum())),
        lambda a: pickle.dumps(a),
        lambda a: copy.deepcopy(a).tolist(),
        lambda a: repr(a),
        lambda a: a.storage()[0],
        lambda a: a.detach().cpu().numpy(),
        lambda a: sealed(a + 1).numpy(),
        lambda a: sealed(a + 1).untyped_storage()[0],
        lambda a: sealed(a + 1).numpy(force=True),
        lambda a: torch.utils.dlpack.to_dlpack(sealed(a + 1)),
        lambda a: np.asarray(sealed(a.t())),
    ]
    for i, reader in enumerate(readers):
        got: list[object] = []
        try:
            poison = _C.trace(lambda a, reader=reader, got=got: got.append(reader(a)), [torch.full((2, 3), 7.0)]).poison
        except Exception:
            poison = "threw"
        assert poison or not got, f"reader {i} got {got[0]!r}"


def sealed(t: torch.Tensor) -> torch.Tensor:
    """What a capture does to every result."""
    _C.seal(t)
    return t
