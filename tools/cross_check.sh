#!/bin/bash
# usage: tools/cross_check.sh
#
# Compiles py/ and aten/ against CPython 3.12's headers and torch 2.11.0 (its wheel without its
# dependencies is enough, it is not imported). capture/ and what stands on it interpret 3.11's bytecode only, so far.
# Needs python3.12 on the PATH or in pyenv; says so and ends well without.
set -euo pipefail
cd "$(dirname "$0")/.."
candidates=$(command -v python3.12 || true; ls "$(pyenv root 2>/dev/null)"/versions/3.12.*/bin/python 2>/dev/null || true)
python=""
for candidate in $candidates; do
  if "$candidate" -c 'import venv' 2>/dev/null; then python=$candidate && break; fi
done
if [ -z "$python" ]; then
  echo "cross check: not run, there is no CPython 3.12 here"
  exit 0
fi
venv=build/venv-312
if [ ! -e $venv/.ready ]; then
  "$python" -m venv $venv
  $venv/bin/pip install --quiet --no-deps torch==2.11.0
  touch $venv/.ready
fi
cmake -S . -B build/cross-312 -G Ninja -DCMAKE_BUILD_TYPE=Release -DBRAZE_TESTS=OFF -DPython_EXECUTABLE="$PWD/$venv/bin/python"
cmake --build build/cross-312 --target braze_py braze_aten
echo "cross check: builds for CPython 3.12 and torch 2.11.0"
