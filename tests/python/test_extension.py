"""The installed module, next to torch."""

import pytest

from braze._torch_version import check_torch_version


def test_another_torch_is_a_clear_import_error() -> None:
    check_torch_version("2.13.0+cu130", built="2.13.0")
    with pytest.raises(ImportError, match=r"built against torch 2\.13\.0, but torch 2\.12\.1 is installed"):
        check_torch_version("2.12.1", built="2.13.0")
