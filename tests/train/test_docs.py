"""The Python of docs/training.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

MANUAL = Path(__file__).parents[2] / "docs" / "training.md"


def test_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", MANUAL.read_text(), flags=re.DOTALL)
    assert snippets
    for snippet in snippets:
        names: dict[str, object] = {}
        quick = snippet.replace("training.steps=20", 'training.steps=1", "training.batch_size=4')
        exec(compile(quick, "docs/training.md", "exec"), names)
        assert names["model"].num_classes == 10


def test_every_section_and_key_is_in_the_manual():
    import dataclasses

    from torchcaps.train import Recipe, load_recipe

    text = MANUAL.read_text()
    recipe = load_recipe("demo")
    for part in dataclasses.fields(Recipe):
        section = getattr(recipe, part.name)
        if part.name in ("model", "name", "description", "seed"):
            continue
        assert f"`[{part.name}]`" in text
        for key in dataclasses.fields(section):
            assert f"`{key.name}`" in text, f"{part.name}.{key.name} is not explained"
