"""Names of a package that are imported when they are first asked for: a list of names need not wait for torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["imported_on_demand"]


def imported_on_demand(
    package: str, home: Mapping[str, str], public: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package takes as its ``__getattr__`` and ``__dir__``.

    ``home`` has the module in which each public name is defined. Other modules of the package are found by their own
    names, as if they had been imported. No public name may be that of a module, too: the module would take its place as
    soon as it is imported.
    """

    def get(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        if not name.startswith("_"):
            wanted = f"{package}.{name}"
            try:
                return importlib.import_module(wanted)
            except ModuleNotFoundError as error:
                if error.name != wanted:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(public)
