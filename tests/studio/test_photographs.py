"""Photographs of digits, made by program, are read by ``predict`` and by an upload in the studio alike, and rightly."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

from digit_photographs import KINDS, photographs
from torchcaps.cli.app import main
from torchcaps.data import sample_digits
from torchcaps.data.readers.written_digit import find_digit, read_digit
from torchcaps.data.window import to_unit_float
from torchcaps.eval import load_model, open_run
from torchcaps.eval.pictures import read_pictures
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.tensors import unpack_tensors

MODEL = "capsnet-mnist"


@pytest.mark.parametrize(
    "taken", [range(0, 50, 7), pytest.param(range(50), marks=pytest.mark.slow)], ids=["a few", "all"]
)
def test_photographs_are_read_by_both(taken, tmp_path, capsys):
    chosen = photographs(taken)
    assert {photograph.kind for photograph in chosen} == set(KINDS)
    for n, photograph in enumerate(chosen):
        (tmp_path / f"{n:02}.jpg").write_bytes(photograph.jpeg)
    assert main(["predict", MODEL, str(tmp_path), "--json"]) == 0
    records = json.loads(capsys.readouterr().out)["predictions"]
    right = [record["classes"] == [str(one.digit)] for record, one in zip(records, chosen, strict=True)]
    assert sum(right) >= 0.9 * len(chosen)
    run = open_run(MODEL)
    expected = read_pictures([tmp_path], run, load_model(run))
    with TestClient(create_app(Catalogue([MODEL])), base_url="http://127.0.0.1") as client:
        for image, photograph in zip(expected.images, chosen, strict=True):
            answer = client.post(f"/api/upload?model={MODEL}", content=photograph.jpeg)
            assert torch.equal(unpack_tensors(answer.content)["image"], image)


@pytest.mark.parametrize("scale", [1.2, 3, 11, 40])
def test_clean_digits_of_both_polarities_and_any_size_stay_right(scale):
    test = sample_digits("test")
    seen = []
    for digit in test.images[:20, 0].numpy():
        large = Image.fromarray(digit).resize((round(28 * scale),) * 2, Image.Resampling.BICUBIC)
        white, black = read_digit(large), read_digit(Image.fromarray(255 - np.asarray(large)))
        assert (white.inverted, black.inverted) == (False, True)
        assert np.abs(white.pixels.astype(int) - black.pixels).mean() < 2
        seen.append(white.pixels)
    with torch.no_grad():
        named = load_model(open_run(MODEL))(to_unit_float(torch.from_numpy(np.stack(seen))[:, None])).scores.argmax(1)
    assert torch.equal(named, test.labels[:20])


def test_a_small_digit_is_looked_at_closely():
    """At 3 % of a large sheet it has eight pixels in the picture that is looked at first."""
    digit = sample_digits("test").images[4, 0].numpy()
    sheet = Image.new("L", (2400, 1800), 220)
    sheet.paste(Image.fromarray(220 - (digit * 0.7).astype(np.uint8)).resize((100, 100)), (1500, 300))
    found = read_digit(sheet)
    assert found.inverted
    assert (
        np.corrcoef(found.pixels.ravel(), read_digit(Image.fromarray(digit).resize((112, 112))).pixels.ravel())[0, 1]
        > 0.9
    )


@pytest.mark.parametrize("noise", [0, 3, 12])
@pytest.mark.parametrize("side", [90, 300, 900])
def test_an_empty_sheet_has_no_digit(noise, side):
    random = np.random.default_rng(side)
    shade = np.linspace(1, 0.6, side)[:, None] * np.linspace(0.9, 1, side)
    sheet = (220 * shade + random.normal(0, 1, (side, side)) * noise).clip(0, 255)
    found = read_digit(Image.fromarray(sheet.astype(np.uint8)))
    assert found.box is None
    assert found.inverted
    assert not found.pixels.any()


def test_pictures_of_a_few_pixels_and_of_one_colour_are_read():
    for height, width in ((1, 1), (1, 40), (3, 2), (40, 1)):
        for value in (0.0, 130.0, 255.0):
            assert find_digit(np.full((height, width), value)).box is None
    assert find_digit(np.eye(3) * 255).pixels.any()
    buffer = io.BytesIO()
    Image.new("L", (5000, 4), 0).save(buffer, "PNG")
    assert read_digit(Image.open(buffer)).box is None
