"""The program ``torchcaps``: joins the commands and turns errors into one paragraph.

A command is a module of this package with a function ``register(app)`` that adds it to the typer application. To add
one, write the module and put its name in ``COMMANDS``. Modules import typer at the top and everything heavy (torch
above all) inside the functions that need it, so that ``--help`` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from torchcaps._version import __version__
from torchcaps.cli.shared import to_stderr
from torchcaps.errors import TorchcapsError

__all__ = ["app", "main"]

COMMANDS = (
    "demo",
    "data",
    "recipes",
    "train",
    "evaluate",
    "robustness",
    "predict",
    "reconstruct",
    "tweak",
    "report",
    "studio",
    "export",
    "models",
    "reproduce",
    "compare",
    "mistakes",
    "figures",
    "doctor",
    "bench",
)
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130
WAIT_POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")  # of OpenMP, of GCC's, of LLVM's

app = typer.Typer(
    name="torchcaps",
    help="Capsule networks for PyTorch: data, training, figures.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"torchcaps {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


for _command in COMMANDS:
    importlib.import_module(f"torchcaps.cli.{_command}").register(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status: 0 done, 1 error, 2 wrong usage, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _let_waiting_threads_sleep()
    try:
        app(arguments, prog_name="torchcaps")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except TorchcapsError as error:
        if "--debug" in arguments:
            raise
        to_stderr(f"Error: {error}", typer.colors.RED)
        return EXIT_ERROR
    except OSError as error:  # what no command explains: above all an output that is redirected to a full disk
        if "--debug" in arguments:
            raise
        _drop_output()
        place = error.filename or "the output"
        to_stderr(f"Error: {place} cannot be read or written: {error.strerror or error}", typer.colors.RED)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _let_waiting_threads_sleep() -> None:
    """Ask OpenMP for threads that soon sleep while they wait, here and in child processes; the user's choice stands.

    GCC's runtime, which torch carries on Linux, lets them spin for milliseconds. Where others use the cores, too, a
    thread then spins for one that has lost its core, and a training takes many times as long. A thousand turns are
    about what it takes to wake a thread. The runtime reads the environment once, when torch is imported.
    """
    if not any(name in os.environ for name in WAIT_POLICIES):
        os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}


def _drop_output() -> None:
    """What is left in the buffer of an output that cannot be written would fail again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
