"""A folder of pictures: what people have in theirs is read by the stated rule, and trouble is named."""

from __future__ import annotations

import os
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from published_files import picture_bytes, write_picture_folder
from torchcaps.data import load
from torchcaps.data.readers.pictures import decode_pictures, flat_picture
from torchcaps.errors import DataError

MAGIC = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpg": b"\xff\xd8\xff\xe0",
    "webp": b"RIFF\x40\x00\x00\x00WEBPVP8 ",
    "gif": b"GIF89a",
    "tiff": b"II*\x00",
    "bmp": b"BM",
}
KINDS = {"PNG": "png", "JPEG": "JPG", "WEBP": "webp", "GIF": "gif", "TIFF": "tif", "BMP": "bmp"}


def test_a_subfolder_is_a_class_and_a_fifth_is_held_out(tmp_path):
    write_picture_folder(tmp_path, {"dog": 10, "cat": 20})
    source = load(f"folder:{tmp_path}")
    assert source.classes == ("cat", "dog")
    assert source.train.class_counts(2) == [16, 8]
    assert source.test.class_counts(2) == [4, 2]
    assert source.image_shape == (1, 8, 8)


def test_a_folder_that_is_none_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file is a file; folder:PATH wants a folder"):
        load(f"folder:{tmp_path / 'file'}")
    with pytest.raises(DataError, match=r"there is no folder .*absent; folder:PATH wants a folder"):
        load(f"folder:{tmp_path / 'absent'}")


def test_pictures_outside_of_the_classes_are_listed(tmp_path):
    write_picture_folder(tmp_path / "whole", {"a": 5, "b": 5})
    (tmp_path / "whole" / "alone.png").write_bytes(b"")
    assert load(f"folder:{tmp_path / 'whole'}").skipped == (f"{tmp_path}/whole/alone.png: in the folder of no class",)
    for part in ("train", "test", "extra"):
        write_picture_folder(tmp_path / "divided" / part, {"a": 2, "b": 2})
    (tmp_path / "divided" / "test" / "alone.png").write_bytes(b"")
    assert load(f"folder:{tmp_path / 'divided'}").skipped == (
        f"{tmp_path}/divided/extra: beside train, test",
        f"{tmp_path}/divided/test/alone.png: in the folder of no class",
    )


@pytest.mark.parametrize("written", [str.lower, str.capitalize])
def test_train_val_and_test_folders_are_respected(tmp_path, written):
    for part, count in ((written("train"), 6), (written("val"), 2), (written("test"), 3)):
        write_picture_folder(tmp_path / part, {"a": count, "b": count})
    source = load(f"folder:{tmp_path}")
    assert {name: len(split) for name, split in source.splits.items()} == {"train": 12, "validation": 4, "test": 6}


def test_kinds_sizes_and_depths_may_be_mixed(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "deeper").mkdir(parents=True)
        grey = np.full((30, 20), 100, np.uint8)
        for kind, suffix in KINDS.items():
            (tmp_path / name / f"grey.{suffix}").write_bytes(picture_bytes(grey, kind))
        colour = np.zeros((10, 40, 3), np.uint8)
        (tmp_path / name / "deeper" / "colour.png").write_bytes(picture_bytes(colour))
        (tmp_path / name / "notes.txt").write_text("not a picture")
        (tmp_path / name / ".hidden.png").write_bytes(b"leftover of a file manager")
    source = load(f"folder:{tmp_path}", size=16)
    assert source.image_shape == (3, 16, 16)
    assert len(source.train) + len(source.test) == 14
    assert load(f"folder:{tmp_path}", channels=1).image_shape == (1, 64, 64)


def decoded(tmp_path, data: bytes, **options) -> torch.Tensor:
    path = tmp_path / "one.png"
    path.write_bytes(data)
    return decode_pictures([path], **options).images[0]


def test_a_picture_is_fitted_inside_and_its_border_repeated(tmp_path):
    pixels = np.repeat(np.array([[10], [200]], np.uint8), 8, axis=1)  # two rows of eight
    image = decoded(tmp_path, picture_bytes(pixels), size=8)
    assert image.shape == (1, 8, 8)
    assert image[0, :, 0].tolist() == [10] * 4 + [200] * 4


def test_transparent_parts_lie_on_white(tmp_path):
    pixels = np.zeros((4, 4, 4), np.uint8)
    pixels[:2, :, 3] = 255  # black and opaque above, transparent below
    image = decoded(tmp_path, picture_bytes(pixels))
    assert image[:, 0, 0].tolist() == [0, 0, 0]
    assert image[:, 3, 3].tolist() == [255, 255, 255]


def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path):
    pixels = np.array([[0, 65535], [256 * 100, 256 * 200]], np.uint16)
    assert decoded(tmp_path, picture_bytes(pixels)).flatten().tolist() == [0, 255, 100, 200]


def test_a_dark_picture_of_sixteen_bits_stays_dark(tmp_path):
    pixels = np.array([[0, 255], [128, 40]], np.uint16)
    assert decoded(tmp_path, picture_bytes(pixels)).flatten().tolist() == [0, 0, 0, 0]
    pixels[0, 1] = 256
    assert decoded(tmp_path, picture_bytes(pixels)).flatten().tolist() == [0, 1, 0, 0]


def test_sixteen_bits_with_a_transparent_level_lie_on_white(tmp_path):
    picture = Image.fromarray(np.array([[1000, 256 * 50]], np.uint16))
    picture.save(tmp_path / "one.png", transparency=1000)
    assert decode_pictures([tmp_path / "one.png"]).images.flatten().tolist() == [255, 50]


def test_a_palette_and_one_bit_pictures_are_read(tmp_path):
    colours = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)
    assert decoded(tmp_path, picture_bytes(colours, mode="P"))[:, 0, 0].tolist() == [255, 0, 0]
    bits = np.array([[0, 255]], np.uint8)
    assert decoded(tmp_path, picture_bytes(bits, mode="1")).flatten().tolist() == [0, 255]


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_a_palette_of_greys_is_grey(tmp_path, kind):
    greys = Image.fromarray(np.array([[10, 100, 250]], np.uint8)).convert("P", palette=Image.Palette.ADAPTIVE)
    greys.save(tmp_path / f"one.{kind.lower()}")
    assert decode_pictures([tmp_path / f"one.{kind.lower()}"]).images.tolist() == [[[[10, 100, 250]]]]


def test_a_photograph_is_turned_as_the_camera_noted(tmp_path):
    picture = Image.fromarray(np.array([[10, 250]] * 8, np.uint8).repeat(4, axis=1))  # 8 × 8, left half dark
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise
    picture.save(tmp_path / "one.png", exif=exif)
    image = decode_pictures([tmp_path / "one.png"]).images[0]
    assert image[0, 0].tolist() == [10] * 8
    assert image[0, 7].tolist() == [250] * 8


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_keeps_the_size_that_it_has_when_turned(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("L", (6, 4)).save(tmp_path / "one.png", exif=exif)
    shape = tuple(decode_pictures([tmp_path / "one.png"]).images.shape)
    assert shape == ((1, 1, 4, 6) if orientation < 5 else (1, 1, 6, 4))


def test_hidden_files_are_no_pictures(tmp_path):
    write_picture_folder(tmp_path, {"a": 3, "b": 3})
    (tmp_path / "a" / "._0.png").write_bytes(b"what a Mac leaves on other disks")
    assert load(f"folder:{tmp_path}").skipped == ()


def test_unreadable_pictures_are_listed_or_an_error(tmp_path):
    write_picture_folder(tmp_path, {"a": 5, "b": 5})
    (tmp_path / "a" / "cut.png").write_bytes(picture_bytes(np.zeros((9, 9), np.uint8))[:40])
    (tmp_path / "a" / "empty.jpg").write_bytes(b"")
    (tmp_path / "b" / "text.bmp").write_text("no picture at all")
    source = load(f"folder:{tmp_path}")
    assert [os.path.basename(line.split(": ")[0]) for line in source.skipped] == ["cut.png", "empty.jpg", "text.bmp"]
    assert len(source.train) + len(source.test) == 10
    with pytest.raises(DataError, match="3 of 13 pictures cannot be read"):
        load(f"folder:{tmp_path}", strict=True)


def test_an_unreadable_picture_has_no_say_in_size_and_colour(tmp_path):
    write_picture_folder(tmp_path, {"a": 3, "b": 3})
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a" / "cut.jpg")
    whole = (tmp_path / "a" / "cut.jpg").read_bytes()
    (tmp_path / "a" / "cut.jpg").write_bytes(whole[: len(whole) // 2])  # its head can be read, its pixels not
    source = load(f"folder:{tmp_path}")
    assert len(source.skipped) == 1
    assert source.image_shape == (1, 8, 8)


def test_files_of_other_kinds_and_folders_without_a_picture_are_listed(tmp_path):
    write_picture_folder(tmp_path, {"a": 5, "b": 5})
    (tmp_path / "a" / "notes.txt").write_text("not a picture")
    (tmp_path / "c" / "deeper").mkdir(parents=True)
    (tmp_path / "c" / "deeper" / "photo.heic").write_bytes(b"of a telephone")
    source = load(f"folder:{tmp_path}")
    assert source.classes == ("a", "b")
    kind = "not a kind that is read (PNG, JPEG, WebP, GIF, TIFF and BMP)"
    assert source.skipped == (
        f"{tmp_path}/a/notes.txt: {kind}",
        f"{tmp_path}/c/deeper/photo.heic: {kind}",
        f"{tmp_path}/c: no class, for it holds no picture",
    )
    with pytest.raises(DataError, match=r"1 folders cannot be read as classes:\n.*/c: no class"):
        load(f"folder:{tmp_path}", strict=True)


def test_a_class_that_is_not_there_is_named_in_the_error(tmp_path):
    write_picture_folder(tmp_path, {"a": 5, "b": 0})
    with pytest.raises(DataError, match=r"one class only, 'a'.*\n.*/b: no class"):
        load(f"folder:{tmp_path}")


def test_a_class_needs_a_readable_picture_to_train(tmp_path):
    for part in ("train", "test"):
        write_picture_folder(tmp_path / part, {"a": 2, "b": 2})
    for path in (tmp_path / "train" / "b").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match="classes without readable pictures in train: b"):
        load(f"folder:{tmp_path}")


def test_a_picture_above_the_limit_is_skipped(tmp_path, monkeypatch):
    write_picture_folder(tmp_path, {"a": 3, "b": 3})
    (tmp_path / "a" / "large.png").write_bytes(picture_bytes(np.zeros((50, 50), np.uint8)) + bytes(5000))
    monkeypatch.setattr("torchcaps.data.readers.pictures.MAX_PICTURE_BYTES", 4000)
    assert "more than the limit" in load(f"folder:{tmp_path}").skipped[0]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({}, "holds no pictures"),
        ({"a": 0, "b": 0}, "holds no pictures"),
        ({"a": 4}, "one class only, 'a'"),
        ({"a": 4, "b": 1}, r"fewer than two pictures: b \(1\)"),
    ],
)
def test_folders_that_cannot_be_learned_from_are_refused(tmp_path, counts, message):
    write_picture_folder(tmp_path, counts)
    with pytest.raises(DataError, match=message):
        load(f"folder:{tmp_path}")


def test_other_mistakes_are_named(tmp_path):
    with pytest.raises(DataError, match="path behind the colon"):
        load("folder:")
    write_picture_folder(tmp_path / "train", {"a": 2, "b": 2})
    write_picture_folder(tmp_path / "test", {"c": 2})
    with pytest.raises(DataError, match="without pictures in train: c"):
        load(f"folder:{tmp_path}")
    with pytest.raises(DataError, match="1 to 4096"):
        load(f"folder:{tmp_path / 'train'}", size=0)
    with pytest.raises(DataError, match=r"1 \(grey\) or 3"):
        load(f"folder:{tmp_path / 'train'}", channels=2)


@pytest.mark.skipif(os.name != "posix", reason="links need rights that Windows users lack")
def test_links_are_followed_but_not_in_circles(tmp_path):
    write_picture_folder(tmp_path / "real", {"a": 4})
    (tmp_path / "set").mkdir()
    for name in ("x", "y"):
        (tmp_path / "set" / name).symlink_to(tmp_path / "real" / "a")
    assert load(f"folder:{tmp_path / 'set'}").train.class_counts(2) == [3, 3]
    (tmp_path / "real" / "a" / "again").symlink_to(tmp_path / "real" / "a")
    with pytest.raises(DataError, match="a link to a folder that contains it"):
        load(f"folder:{tmp_path / 'set'}")
    (tmp_path / "real" / "a" / "again").unlink()
    (tmp_path / "real" / "a" / "itself.png").symlink_to(tmp_path / "real" / "a" / "itself.png")
    with pytest.raises(DataError, match="cannot be followed"):
        load(f"folder:{tmp_path / 'set'}")


def test_a_class_is_tested_from_five_pictures_on(tmp_path):
    """As the error says that names classes of one picture: two are enough to load, five to be tested, too."""
    for place, counts in enumerate(
        ({"a": 2, "b": 2}, {"a": 5, "b": 2}, {"a": 5, "b": 5, "c": 7, "d": 5}, {"a": 5, "b": 41})
    ):
        write_picture_folder(tmp_path / str(place), counts)
        source = load(f"folder:{tmp_path / str(place)}")
        trained, tested = (split.class_counts(len(counts)) for split in (source.train, source.test))
        assert min(trained) >= 1
        assert all(held_out for held_out, count in zip(tested, counts.values(), strict=True) if count >= 5)
    write_picture_folder(tmp_path / "few", {"a": 20, "b": 1})
    with pytest.raises(DataError, match="one to learn from and one to test on, so add pictures"):
        load(f"folder:{tmp_path / 'few'}")


def test_groups_never_stand_on_both_sides(tmp_path):
    write_picture_folder(tmp_path, {"a": 10, "b": 10})
    rows = [f"{name}/{number:03}.png,patient {number // 2}" for name in "ab" for number in range(10)]
    (tmp_path / "groups.csv").write_text("path,group\n" + "\n".join(rows))
    source = load(f"folder:{tmp_path}")
    assert not set(source.train.groups.tolist()) & set(source.test.groups.tolist())
    assert len(source.test) == 4
    (tmp_path / "groups.csv").write_text("path,group\n" + "\n".join(rows[:-1]))
    with pytest.raises(DataError, match=r"no group for 1 of 20 pictures, the first is b/009\.png"):
        load(f"folder:{tmp_path}")
    (tmp_path / "groups.csv").write_text("file,patient\n")
    with pytest.raises(DataError, match="header path,group"):
        load(f"folder:{tmp_path}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a/000.png,other", r"line 6: a/000\.png is listed in line 2 already"),
        ("./a/000.png,other", r"line 6: a/000\.png is listed in line 2 already"),
        ("a/gone.png,one", r"line 6: there is no file 'a/gone\.png'"),
        ("a,one", "line 6: there is no file 'a'"),
        (f"{'a' * 5000},one", "line 6: there is no file"),
    ],
)
def test_groups_name_each_picture_once_and_nothing_else(tmp_path, line, message):
    write_picture_folder(tmp_path, {"a": 2, "b": 2})
    rows = [f"{name}/{number:03}.png,{name}{number}" for name in "ab" for number in range(2)]
    (tmp_path / "groups.csv").write_text("path,group\n" + "\n".join([*rows, line]))
    with pytest.raises(DataError, match=message):
        load(f"folder:{tmp_path}")


def test_groups_must_respect_the_folders(tmp_path):
    for part in ("train", "test"):
        write_picture_folder(tmp_path / part, {"a": 2, "b": 2})
    names = [f"{part}/{name}/{number:03}.png" for part in ("train", "test") for name in "ab" for number in range(2)]
    blank = {"train": "", "test": " "}  # a blank behind a name makes no other group
    rows = [f"{name},one{blank[name.split('/')[0]]}" for name in names]
    (tmp_path / "groups.csv").write_text("path,group\n" + "\n".join(rows))
    with pytest.raises(DataError, match="in train and in test"):
        load(f"folder:{tmp_path}")


def test_too_many_pixels_for_the_memory_are_refused(tmp_path, monkeypatch):
    write_picture_folder(tmp_path, {"a": 2, "b": 2})
    monkeypatch.setattr("torchcaps.data.readers.pictures.MAX_FILE_BYTES", 4 * 64 - 1)
    with pytest.raises(DataError, match="choose a smaller size"):
        load(f"folder:{tmp_path}")


@given(st.binary(max_size=120), st.sampled_from(sorted(MAGIC)), st.booleans())
def test_random_bytes_raise_our_error_or_are_skipped(tmp_path_factory, data, suffix, with_magic):
    magic = MAGIC[suffix]
    folder = write_picture_folder(tmp_path_factory.mktemp("set"), {"a": 2, "b": 2}, size=2)
    (folder / "a" / f"odd.{suffix}").write_bytes(magic * with_magic + data)
    try:
        source = load(f"folder:{folder}", size=4)
    except DataError:
        return
    assert len(source.train) + len(source.test) + len(source.skipped) == 5


def test_a_missing_library_is_named_with_the_way_to_get_it(tmp_path, monkeypatch):
    write_picture_folder(tmp_path, {"a": 2, "b": 2})
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r'pip install "torchcaps\[images\]"'):
        load(f"folder:{tmp_path}")


def test_a_large_picture_of_sixteen_bits_takes_little_memory():
    """Values, grey and strips; not eight bytes a pixel several times over."""
    picture = Image.fromarray(np.arange(4_000_000, dtype=np.uint16).reshape(2000, 2000))
    tracemalloc.start()
    try:
        grey = np.asarray(flat_picture(picture, True))
        assert tracemalloc.get_traced_memory()[1] < 8 * 4_000_000
    finally:
        tracemalloc.stop()
    assert np.array_equal(grey, np.asarray(picture) >> 8)


@pytest.mark.parametrize("height", [255, 256, 257, 600])
def test_strips_leave_no_seam(height):
    pixels = np.random.default_rng(0).integers(0, 256, (height, 7, 4), dtype=np.uint8)
    whole = Image.new("RGBA", (7, height), "white")
    whole.alpha_composite(Image.fromarray(pixels))
    assert np.array_equal(np.asarray(flat_picture(Image.fromarray(pixels), False)), np.asarray(whole.convert("RGB")))
