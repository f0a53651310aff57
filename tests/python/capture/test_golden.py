"""Golden texts of captures: tests/golden/capture/NAME.py in, NAME.txt out (pytest --bless rewrites)."""

import re
import runpy
from pathlib import Path

import pytest

from braze import _C

FOLDER = Path(__file__).parents[2] / "golden" / "capture"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    """The text names values and guards, no offsets or opcodes, so that it holds for every Python version."""
    names = runpy.run_path(str(path))
    text = _C.capture_text(names["program"], names["args"])
    text = re.sub(r"/\S*/(site-packages|golden/capture)/", "", text)
    golden = path.with_suffix(".txt")
    if request.config.getoption("--bless", default=False):
        golden.write_text(text)
    assert text == golden.read_text(), f"pytest tests/python/capture/test_golden.py --bless -k {path.stem}"
