"""A dozen quick models of the zoo, one fresh process each: the values of eager, the work in kernels.

The whole list: zoo.py run braze [--train]; what is known of each model: known.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICK = ["bert", "gpt_neox", "llama", "gemma2", "opt", "umt5", "mbart", "deit", "dinov2", "convnextv2", "regnet", "esm"]


def known() -> dict[str, dict[str, str]]:
    return json.loads((HERE / "known.json").read_text())  # type: ignore[no-any-return]


def run(name: str, train: bool, cache: Path) -> dict[str, object]:
    child = subprocess.run(
        [sys.executable, str(HERE / "zoo.py"), "child", "braze", name, "1" if train else "0"],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "BRAZE_STRICT": "1", "BRAZE_CACHE_DIR": str(cache)},
    )
    lines = [line for line in child.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, f"{name} failed with {child.returncode}: {child.stderr[-2000:]}"
    return json.loads(lines[0].removeprefix("RESULT "))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("train", [False, True], ids=["inference", "train"])
@pytest.mark.parametrize("name", QUICK)
def test_model(name: str, train: bool, cache: Path) -> None:
    assert known()[name]["train" if train else "inference"] == "ok", "not known to work: update known.json first"
    result = run(name, train, cache)
    assert result["ok"], result
