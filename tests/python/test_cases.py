"""The user programs of tests/cases: every one ends right, and those known to compile keep compiling."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent.parent / "cases"
KNOWN = json.loads(
    (CASES / "known.json").read_text()
)  # id -> "PASS", or why not: "EAGER ...", "ERROR ...", "LIMIT ..."


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    report = tmp_path_factory.mktemp("cases") / "report.json"
    command = [sys.executable, CASES / "run_cases.py", "--engine", "braze", "--json", report]
    subprocess.run(command, check=False, capture_output=True, timeout=1500)
    return json.loads(report.read_text())["results"]


@pytest.mark.timeout(1600)
@pytest.mark.parametrize("name", list(KNOWN))
def test_case(name, results):
    row, known = results[name], KNOWN[name]
    assert row["status"] not in ("WRONG", "CRASH", "TIMEOUT"), row["reason"]
    if known == "PASS":
        assert row["status"] == "PASS", f"{row['status']}: {row['reason']}"
