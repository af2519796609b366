"""Write results so that a reader sees a whole file or none, and say what to do when the disk refuses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from torchcaps.errors import TorchcapsError

__all__ = ["OutputError", "check_writable", "disk_errors_explained", "write_file"]


class OutputError(TorchcapsError):
    """A result could not be written."""


@contextmanager
def disk_errors_explained(path: Path, option: str | None = "--out") -> Iterator[None]:
    """Say in a sentence that the disk refuses, and with which option of the command to choose another place, if any."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if "No space left" in reason:
            reason = "the disk is full"
        elif isinstance(error, FileExistsError | NotADirectoryError):
            in_the_way = next((place for place in (path, *path.parents) if place.is_file()), path)
            reason = f"{in_the_way} is a file, not a folder"
        raise OutputError(f"{path} cannot be written: {reason}; choose another place{_with(option)}") from error


def check_writable(path: Path, option: str | None = "--out") -> None:
    """Raise now what :func:`write_file` would raise after the work; makes the folders that it needs."""
    path = _file_name(path, option)
    with disk_errors_explained(path, option):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        os.unlink(scratch)


def write_file(path: Path, content: bytes | str, option: str | None = "--out") -> Path:
    """Write beside the place under another name, then move there in one step; folders are made as needed.

    ``option`` is what names the place on the command line, for an error to say; none where an argument does.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path = _file_name(path, option)
    with disk_errors_explained(path, option):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(scratch, 0o644)  # temporary files are private, results are not
            os.replace(scratch, path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    return path


def _file_name(path: Path, option: str | None) -> Path:
    path = path.expanduser()
    if path.is_dir():
        raise OutputError(f"{path} is a folder; name a file in it{_with(option)}")
    return path


def _with(option: str | None) -> str:
    return "" if option is None else f" with {option}"
