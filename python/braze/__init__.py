"""Braze compiles unmodified PyTorch programs: ``model = braze.compile(model)``."""

from braze._torch_version import check_torch_version

check_torch_version()  # before the extension: a wrong torch shows as an undefined C++ symbol there

import braze._C  # noqa: E402, F401
