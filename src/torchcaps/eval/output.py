"""Write results so that a reader sees a whole file or none, and say what to do when the disk refuses."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from torchcaps.errors import TorchcapsError

__all__ = ["OutputError", "check_writable", "write_file"]


class OutputError(TorchcapsError):
    """A result could not be written."""


def check_writable(path: Path) -> None:
    """Raise now what :func:`write_file` would raise after the work; makes the folders that it needs."""
    try:
        path = path.expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        os.unlink(scratch)
    except OSError as error:
        raise OutputError(_explained(path, error)) from error


def write_file(path: Path, content: bytes | str) -> Path:
    """Write beside the place under another name, then move there in one step; folders are made as needed."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    path = path.expanduser()
    if path.is_dir():
        raise OutputError(f"{path} is a folder; name a file in it with --out")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise OutputError(_explained(path, error)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(scratch, 0o644)  # temporary files are private, results are not
        os.replace(scratch, path)
    except BaseException as error:
        Path(scratch).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OutputError(_explained(path, error)) from error
        raise
    return path


def _explained(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {error.strerror or error}; choose another place with --out"
