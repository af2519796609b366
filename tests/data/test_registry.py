"""``load`` and the catalogue: names, places, checksums, and sets assembled from their files."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from published_files import digits, idx_bytes, norb_bytes
from torchcaps.data import SampleDataWarning, list_sources, load
from torchcaps.data import locate as locate_module
from torchcaps.data.catalog import CATALOG
from torchcaps.data.info import SourceInfo
from torchcaps.errors import DataError


def without_checksums(monkeypatch, name: str) -> SourceInfo:
    """Let toy files pass for a published set: same names and form, other contents."""
    info = CATALOG[name]
    sets = tuple(
        dataclasses.replace(
            file_set, files=tuple(dataclasses.replace(file, md5=None, packed_md5=None) for file in file_set.files)
        )
        for file_set in info.file_sets
    )
    changed = dataclasses.replace(info, file_sets=sets, downloads=(), packages=())
    monkeypatch.setitem(CATALOG, name, changed)
    return changed


def write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def toy_mnist() -> dict[str, bytes]:
    train, test = digits(30), digits(20)
    names = [file.name for file in CATALOG["mnist"].file_sets[0].files]
    return dict(zip(names, [idx_bytes(values) for values in (*train, *test)], strict=True))


@pytest.mark.parametrize("info", list_sources(), ids=lambda info: info.name)
def test_every_entry_says_what_people_ask(info):
    assert info.title
    assert info.licence
    assert info.origin
    assert info.how_to_get
    assert info.num_classes == len(set(info.classes)) >= 2
    assert info.train_count > 0
    for item in info.downloads:
        assert all(url.startswith("https://") for url in item.urls)
    for file_set in info.file_sets:
        assert file_set.folders
        assert all(file.md5 is None or len(file.md5) == 32 for file in file_set.files)


def test_names_can_be_searched_and_mistyped():
    assert [info.name for info in list_sources("emnist-*")][:2] == ["emnist-balanced", "emnist-byclass"]
    with pytest.raises(DataError, match="did you mean 'fashion-mnist'"):
        load("fashionmnist")
    with pytest.raises(DataError, match="did you mean 'folder:'"):
        load("folder")
    with pytest.raises(DataError, match="folder: and csv:; mnist has a fixed form"):
        load("mnist", size=32)


def test_a_path_without_its_kind_is_told_which(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "list.csv").write_text("path,label")
    with pytest.raises(DataError, match="did you mean 'folder:pictures'"):
        load("pictures", size=32)
    with pytest.raises(DataError, match=r"did you mean 'csv:list\.csv'"):
        load("list.csv")


@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_files_are_found_in_the_usual_folders(tmp_path, monkeypatch, folder, packed):
    without_checksums(monkeypatch, "mnist")
    files = toy_mnist()
    if packed:
        files = {f"{name}.gz": gzip.compress(data) for name, data in files.items()}
    write(tmp_path / folder, files)
    monkeypatch.setenv("TORCHCAPS_DATA", str(tmp_path))
    source = load("mnist", download=False)
    assert (len(source.train), len(source.test)) == (30, 20)
    assert str(tmp_path / folder) in source.origin


def test_the_named_folder_comes_before_the_environment(tmp_path, monkeypatch):
    without_checksums(monkeypatch, "mnist")
    write(tmp_path / "one" / "mnist", toy_mnist())
    monkeypatch.setenv("TORCHCAPS_DATA", str(tmp_path / "two"))
    assert "one" in load("mnist", data_dir=tmp_path / "one", download=False).origin
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DataError, match="is a file"):
        load("mnist", data_dir=tmp_path / "file", download=False)


def test_the_cache_follows_the_customs_of_the_system(tmp_path, monkeypatch):
    monkeypatch.setattr(locate_module.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert locate_module.cache_folder() == tmp_path / "torchcaps" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert locate_module.cache_folder() == Path.home() / ".cache" / "torchcaps" / "data"
    monkeypatch.setattr(locate_module.sys, "platform", "darwin")
    assert locate_module.cache_folder() == Path.home() / "Library" / "Caches" / "torchcaps" / "data"
    monkeypatch.setattr(locate_module.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert locate_module.cache_folder() == tmp_path / "torchcaps" / "Cache" / "data"


def test_files_of_another_set_are_refused_where_a_folder_names_the_set(tmp_path):
    write(tmp_path / "mnist", toy_mnist())
    with pytest.raises(DataError, match="not the published file: expected MD5 6bbc9ace"):
        load("mnist", data_dir=tmp_path, download=False)


def test_files_of_another_set_are_passed_over_where_no_folder_names_one(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path, toy_mnist())
    with pytest.raises(DataError, match="is not on this machine"):
        load("fashion-mnist", data_dir=tmp_path, download=False)


def test_a_set_with_holes_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = toy_mnist()
    files.pop("t10k-labels-idx1-ubyte")
    write(tmp_path / "fashion-mnist", files)
    with pytest.raises(DataError, match="lacks t10k-labels-idx1-ubyte"):
        load("fashion-mnist", data_dir=tmp_path, download=False)


def test_packed_checksums_are_compared(tmp_path, monkeypatch):
    files = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in toy_mnist().items()}
    write(tmp_path / "kmnist", files)
    with pytest.raises(DataError, match="expected MD5 bdb82020"):
        load("kmnist", data_dir=tmp_path, download=False)
    info = CATALOG["kmnist"]
    right = tuple(
        dataclasses.replace(file, packed_md5=hashlib.md5(files[f"{file.name}.gz"]).hexdigest())
        for file in info.file_sets[0].files
    )
    sets = (dataclasses.replace(info.file_sets[0], files=right),)
    monkeypatch.setitem(CATALOG, "kmnist", dataclasses.replace(info, file_sets=sets))
    assert load("kmnist", data_dir=tmp_path, download=False).classes[0] == "o"


def test_emnist_letters_count_from_one_and_stand_upright(tmp_path):
    images, labels = digits(52, classes=26)
    names = [file.name for file in CATALOG["emnist-letters"].file_sets[0].files]
    parts = [idx_bytes(images), idx_bytes(labels + 1)] * 2
    write(tmp_path / "emnist", dict(zip(names, parts, strict=True)))
    source = load("emnist-letters", data_dir=tmp_path, download=False)
    assert source.train.class_counts(26) == [2] * 26
    for split in (source.train, source.test):
        assert torch.equal(split.images[0, 0], torch.from_numpy(images[0].T.copy()))


def test_cifar10_is_read_from_either_version(tmp_path, monkeypatch):
    without_checksums(monkeypatch, "cifar10")
    record = np.zeros((2, 3073), np.uint8)
    record[:, 0] = [3, 9]
    names = [file.name for file in CATALOG["cifar10"].file_sets[0].files]
    write(tmp_path / "cifar-10-batches-bin", {name: record.tobytes() for name in names})
    source = load("cifar10", data_dir=tmp_path, download=False)
    assert (len(source.train), len(source.test), source.image_shape) == (10, 2, (3, 32, 32))
    assert source.classes[source.test.labels[0]] == "cat"


def test_smallnorb_svhn_and_affnist_are_assembled(tmp_path, monkeypatch):
    for name in ("smallnorb", "svhn", "mnist"):
        without_checksums(monkeypatch, name)
    pixels = np.zeros((5, 2, 96, 96), np.uint8)
    info = np.zeros((5, 4), "<i4")
    parts = [norb_bytes(pixels), norb_bytes(np.arange(5, dtype="<i4")), norb_bytes(info)] * 2
    names = [file.name for file in CATALOG["smallnorb"].file_sets[0].files]
    write(tmp_path / "smallnorb", {f"{n}.gz": gzip.compress(p) for n, p in zip(names, parts, strict=True)})
    norb = load("smallnorb", data_dir=tmp_path, download=False)
    assert (norb.image_shape, norb.test.class_counts(5)) == ((2, 96, 96), [1] * 5)

    def mat(**variables) -> bytes:
        buffer = io.BytesIO()
        scipy.io.savemat(buffer, variables)
        return buffer.getvalue()

    house = mat(X=np.zeros((32, 32, 3, 3), np.uint8), y=np.array([[1], [2], [10]], np.uint8))
    write(tmp_path / "svhn", {"train_32x32.mat": house, "test_32x32.mat": house})
    assert load("svhn", data_dir=tmp_path, download=False).test.labels.tolist() == [1, 2, 0]

    record = {"image": np.ones((1600, 4), np.uint8), "label_int": np.arange(4, dtype=np.uint8)[None]}
    write(tmp_path / "affnist", {"test.mat": mat(affNISTdata=record)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.warns(SampleDataWarning):
        assert load("affnist", data_dir=tmp_path, download=False).is_sample
    write(tmp_path / "mnist", toy_mnist())
    affine = load("affnist", data_dir=tmp_path, download=False)
    assert (len(affine.train), len(affine.test), affine.image_shape) == (30, 4, (1, 40, 40))
    inner = affine.train.images[:, :, 6:34, 6:34]
    assert torch.equal(inner, load("mnist", data_dir=tmp_path, download=False).train.images)
    assert int(affine.train.images.sum()) == int(inner.sum())  # nothing but background around it
