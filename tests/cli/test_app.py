"""The program as a whole: exit statuses, one paragraph for an error, help at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchcaps._version import __version__
from torchcaps.cli.app import WAIT_POLICIES, main
from torchcaps.errors import DataError
from torchcaps.train import list_recipes


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"torchcaps {__version__}\n"
    assert main(["--help"]) == 0
    assert "data" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["data", "fetch"], ["nonsense"], ["data", "list", "--nonsense"]])
def test_wrong_usage_exits_with_two(arguments, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: torchcaps" in captured.err


def test_an_error_is_one_paragraph_without_a_traceback(capsys):
    assert main(["data", "info", "mnits"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: no data set is named 'mnits'; did you mean 'mnist'")
    assert "Traceback" not in captured.err


def test_debug_shows_where_the_error_arose():
    with pytest.raises(DataError):
        main(["--debug", "data", "info", "mnits"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("arguments", [["recipes", "list"], ["--version"]])  # more and less than a buffer holds
def test_an_output_to_a_full_disk_is_one_sentence(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "torchcaps", *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be read or written: No space left on device\n"


def test_an_interrupt_exits_with_130(monkeypatch):
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("torchcaps.data.registry.load", interrupted)
    assert main(["data", "info", "mnist-sample"]) == 130


def test_the_command_line_itself_does_not_import_torch():
    """Only the modules of the command line are looked at here, so the package's own imports are set aside."""
    program = (
        "import sys, types, pathlib, importlib.util as u\n"
        "root = pathlib.Path(u.find_spec('torchcaps.errors').origin).parent\n"
        "for name in [n for n in sys.modules if n.split('.')[0] in ('torchcaps', 'torch')]: del sys.modules[name]\n"
        "bare = types.ModuleType('torchcaps'); bare.__path__ = [str(root)]; sys.modules['torchcaps'] = bare\n"
        "from torchcaps.cli.app import main\n"
        "assert main(['data', '--help']) == 0\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_a_narrow_terminal_cuts_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for command in (["data", "list"], ["recipes", "list"], ["models", "list"]):
        assert main(command) == 0
        output = capsys.readouterr().out
        assert "…" not in output
    assert "baseline-cnn-multimnist" in output


def test_no_line_is_broken_in_a_file(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["recipes", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(list_recipes())
    assert any("CapsNet on MNIST, the paper's text" in line for line in lines)


@pytest.mark.parametrize(("setting", "colour"), [("", "red"), ("1", None)])
def test_no_colour_where_none_is_wanted(setting, colour, monkeypatch):
    told = []
    monkeypatch.setenv("NO_COLOR", setting)
    monkeypatch.setattr("typer.secho", lambda text, err, fg, bold: told.append(fg))
    assert main(["data", "info", "mnits"]) == 1
    assert told == [colour]


WATCHED = """
import os, runpy, sys

class StopAtTorch:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"))
            sys.stdout.flush()
            os._exit(0)

sys.meta_path.insert(0, StopAtTorch())
"""
STARTS = {
    "program": "from torchcaps.cli.app import main; main(['models', 'info', 'small-cnn'])",
    "module": "sys.argv[1:] = ['models', 'info', 'small-cnn']; runpy.run_module('torchcaps', run_name='__main__')",
    "library": "import torchcaps.ops",
}


@pytest.mark.parametrize(
    ("start", "chosen", "expected"),
    [
        ("program", {}, "PASSIVE 1000"),
        ("module", {}, "PASSIVE 1000"),
        ("program", {"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
        ("program", {"KMP_BLOCKTIME": "0"}, "None None"),
        ("program", {"GOMP_SPINCOUNT": "50"}, "None 50"),
        ("library", {}, "None None"),
    ],
)
def test_threads_that_wait_sleep_unless_the_user_has_chosen(start, chosen, expected):
    """What the environment says when torch is about to be imported, which is when OpenMP reads it."""
    kept = {name: value for name, value in os.environ.items() if name not in WAIT_POLICIES}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED + STARTS[start]], env=kept | chosen, capture_output=True, text=True
    )
    assert done.stdout == f"{expected}\n", done.stderr
