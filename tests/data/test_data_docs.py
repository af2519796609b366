"""The examples in docs/data.md and in the docstrings run, and its table agrees with the catalogue."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from torchcaps.data import registry, sample, splits
from torchcaps.data.catalog import CATALOG

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_snippets_of_the_page_run():
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(snippets) == 2
    for snippet in snippets:
        names: dict[str, object] = {}
        exec(compile(snippet, str(PAGE), "exec"), names)
        for line in snippet.splitlines():
            if match := re.match(r"(\S.*\S)\s+# (\(.*\)|torch\.Size\(\[.*?\]\))", line):
                assert repr(eval(match[1], names)) == match[2]


def test_the_table_of_the_page_is_that_of_the_catalogue():
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| ([0-9×]+) \| (\d+) \| ([0-9,]+)[^|]*\| ([0-9,]+) ", PAGE.read_text(), re.M
    )
    shown = {name: (shape, int(classes), train, test) for name, shape, classes, train, test in rows}
    assert set(shown) == {name for name in CATALOG if not name.startswith("emnist")}
    for name, row in shown.items():
        info = CATALOG[name]
        shape = "×".join(map(str, info.image_shape))
        assert row == (shape, info.num_classes, f"{info.train_count:,}", f"{info.test_count:,}")


@pytest.mark.parametrize("module", [registry, sample, splits], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
