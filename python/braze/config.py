"""``braze.config``: the options of the process, each also an environment variable ``BRAZE_<NAME>``.

>>> braze.config.fallback_random = True
>>> with braze.config.patch(recompile_limit=2): ...

``docs/options.md`` lists them; it is written by ``python -m braze.config``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from braze import _C


class Config:
    """Attribute access to options; an unknown one raises AttributeError, a value that does not fit ValueError."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return _C.option(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "fallback_random" and not value:
            raise NotImplementedError("braze.config: fallback_random=False is not there yet.")
        _C.set_option(name, str(int(value)) if isinstance(value, bool) else str(value))

    def __dir__(self) -> list[str]:
        return [row["name"] for row in _C.option_table()] + ["patch"]

    @contextlib.contextmanager
    def patch(self, **values: Any) -> Iterator[None]:
        """Set options for a ``with`` block."""
        before = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


def document() -> str:
    """The text of docs/options.md."""
    rows = "".join(
        f"| `{r['name']}` | `{r['environment']}` | {r['type']} | `{r['default']!r}` | {r['doc']} |\n"
        for r in _C.option_table()
    )
    head = "| `braze.config` | environment | type | default | meaning |\n| --- | --- | --- | --- | --- |\n"
    return f"# Options\n\nMade by `python -m braze.config`.\n\n{head}{rows}"


if __name__ == "__main__":
    print(document(), end="")
