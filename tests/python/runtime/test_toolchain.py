"""Compilers and cache folders that misbehave: a warning, never a wrong or lost result; Ctrl-C, forks, a clean exit."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import torch
from braze import _C
text = '''graph @f(%x: f32[4, 8]) -> f32[4, 8] {
  %0: f32[4, 8] = aten.exp(%x)
  %1: f32[4, 8] = aten.mul.Tensor(%0, 3.0)
  return %1 }'''
x = torch.randn(4, 8)
f = _C.GraphExecutable(text, backend="braze")
torch.testing.assert_close(f([x])[0], x.exp() * 3)
print("planned", f.compiled_ops(), flush=True)
"""


def environment(tmp_path: Path, **variables: str) -> dict[str, str]:
    """This process's environment with a cache of its own, not strict."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("BRAZE_") and k != "CXX"}
    return clean | {"BRAZE_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)} | variables


def run(tmp_path: Path, program: str = PROGRAM, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def script(tmp_path: Path, body: str) -> str:
    """A compiler that knows its version and does `body` otherwise."""
    path = tmp_path / "cxx"
    path.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo cxx 1.0; exit 0;; esac\n{body}\n')
    path.chmod(0o700)
    return str(path)


def test_kernels_come_from_disk_in_the_next_process(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert first.stdout == "planned 2\n", first.stderr
    assert first.stderr == ""
    second = run(tmp_path, BRAZE_COMPILE_TIMEOUT="0.000001")
    assert second.stdout == "planned 2\n", second.stderr
    assert second.stderr == ""
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "no C++ compiler works"),
        ("echo boom; exit 3", "exit status 3"),
        ("kill -SEGV $$", "killed by signal 11"),
        ("sleep 60", "killed at its time limit"),
    ],
)
def test_a_compiler_that_fails(tmp_path: Path, body: str | None, message: str) -> None:
    cxx = "/nowhere/c++" if body is None else script(tmp_path, body)
    result = run(tmp_path, BRAZE_CXX=cxx, BRAZE_COMPILE_TIMEOUT="1")
    assert result.stdout == "planned 0\n", result.stderr
    assert message in result.stderr
    assert result.stderr.count("a compiled region runs as library calls") == 1
    if body is not None:
        source = next(word for word in result.stderr.split() if word.rstrip(":").endswith(".cpp")).rstrip(":")
        assert "extern" in Path(source).read_text()


@pytest.mark.parametrize("kind", ["file", "open to others", "corrupt"])
def test_a_cache_folder_that_cannot_be_trusted(tmp_path: Path, kind: str) -> None:
    cache = tmp_path / "cache"
    if kind == "file":
        cache.write_text("not a folder")
    elif kind == "open to others":
        cache.mkdir()
        cache.chmod(0o777)
    else:
        run(tmp_path)
        for path in [p for p in cache.rglob("*") if p.is_file()]:
            path.write_bytes(b"nonsense")
    result = run(tmp_path)
    assert result.stdout == "planned 2\n", result.stderr
    assert ("kernels are not kept on disk" in result.stderr) == (kind != "corrupt")


def test_ctrl_c_ends_a_compile(tmp_path: Path) -> None:
    cxx = script(tmp_path, "sleep 100")
    child = subprocess.Popen(
        [sys.executable, "-c", "print('ready', flush=True)\n" + PROGRAM],
        env=environment(tmp_path, BRAZE_CXX=cxx),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("braze-*/*.cpp")) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert not list(tmp_path.glob("braze-*"))


def test_a_forked_child_compiles_and_exits_cleanly(tmp_path: Path) -> None:
    program = PROGRAM.replace("import torch\n", "import os, torch\ntorch.set_num_threads(1)\n") + (
        "child = os.fork()\n"
        "g = _C.GraphExecutable(text.replace('3.0', '5.0') if child == 0 else text, backend='braze')\n"
        "torch.testing.assert_close(g([x])[0], x.exp() * (5 if child == 0 else 3))\n"
        "torch.testing.assert_close(f([x])[0], x.exp() * 3)\n"
        "if child == 0: os._exit(0)\n"
        "print('child', os.waitpid(child, 0)[1])\n"
    )
    result = run(tmp_path, program)
    assert result.stdout == "planned 2\nchild 0\n", result.stderr
    assert result.returncode == 0


def test_the_interpreter_exits_cleanly_after_a_compiled_call(tmp_path: Path) -> None:
    program = "import torch, braze\nprint(braze.compile(lambda x: x.exp() + 1)(torch.zeros(2)).tolist())\n"
    result = run(tmp_path, program)
    assert result.stdout == "[2.0, 2.0]\n", result.stderr
    assert (result.returncode, result.stderr) == (0, "")
