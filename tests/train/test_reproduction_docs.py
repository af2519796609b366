"""The page on reproduction: every command resolves, every test and file that it points to exists."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from torchcaps.cli.app import app
from torchcaps.train.studies import list_studies

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reproduction.md").read_text()


def test_commands_and_options_exist():
    commands = get_command(app).commands
    known = {option for parameter in commands["reproduce"].params for option in parameter.opts}
    lines = re.findall(r"^\$ torchcaps (.+)$", TEXT, flags=re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        command, argument = line.split()[:2]
        assert command in commands
        if command == "reproduce":
            assert argument in list_studies()
            assert set(re.findall(r" (--[a-z-]+)", line)) <= known
    assert set(re.findall(r"^\| `(--[a-z-]+)", TEXT, flags=re.MULTILINE)) <= known
    assert {f"`{name}`" for name in list_studies()} <= set(re.findall(r"^\| (`[a-z0-9]+`)", TEXT, flags=re.MULTILINE))


def test_what_it_points_to_exists():
    for link in re.findall(r"\]\((\.\./[^)]+)\)", TEXT):
        assert (ROOT / "docs" / link).exists(), link
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"\b(test_[a-z_]+)`", TEXT):
        assert f"def {name}(" in tests, name
