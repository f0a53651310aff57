"""Braze compiles unmodified PyTorch programs: ``model = braze.compile(model)``."""

from braze._torch_version import check_torch_version

check_torch_version()  # before the extension: a wrong torch shows as an undefined C++ symbol there

from braze.api import compile, disable, is_compiling, list_backends, reset, stats  # noqa: E402
from braze.config import Config  # noqa: E402
from braze.explain import Report, explain  # noqa: E402

config = Config()

__all__ = ["Report", "compile", "config", "disable", "explain", "is_compiling", "list_backends", "reset", "stats"]
