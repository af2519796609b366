"""docs/studio.md: its program runs, and it lists every address and option."""

from __future__ import annotations

import re
from pathlib import Path

from torchcaps.cli.app import main

PAGE = Path(__file__).parents[2] / "docs" / "studio.md"


def test_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(snippet, "docs/studio.md", "exec"), names)
    assert names["lengths"].shape == (1, 10)


def test_every_address_is_listed(client):
    text = PAGE.read_text().replace("{model}", "{model_id}")
    for path in client.get("/api/openapi.json").json()["paths"]:
        assert path in text, path


def test_every_option_is_listed(capsys):
    assert main(["studio", "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--browser", "--compare"}
    text = PAGE.read_text()
    assert options
    for option in options:
        assert f"`{option}" in text, option
