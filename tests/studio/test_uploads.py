"""People's own pictures, made into what the network takes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from torchcaps.data import sample_digits
from torchcaps.data.readers.written_digit import find_digit
from torchcaps.studio.tensors import unpack_tensors


def upload(client, picture: Image.Image, kind: str = "PNG", model: str = "small", invert: str = "auto", **options):
    file = io.BytesIO()
    picture.save(file, kind, **({"quality": 95} if kind in ("JPEG", "WEBP") else {}), **options)
    answer = client.post(
        f"/api/upload?model={model}&invert={invert}",
        content=file.getvalue(),
        headers={"content-type": f"image/{kind.lower()}"},
    )
    assert answer.status_code == 200, answer.text
    return unpack_tensors(answer.content)["image"], b'"inverted":"true"' in answer.content


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF"])
def test_ink_on_paper_is_inverted_centred_and_scaled(client, kind):
    paper = np.full((300, 200), 235, dtype=np.uint8)
    paper[40:240, 60:80] = 20  # a one, upper left of the middle
    image, inverted = upload(client, Image.fromarray(paper), kind)
    assert inverted
    assert image.shape == (1, 28, 28)
    ink = (image[0] > 0.5).nonzero()
    assert (ink.amax(0) - ink.amin(0) + 1).tolist() == [20, 2]
    mass = image[0, :, :, None] * torch.stack(torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij"), -1)
    middle = mass.sum((0, 1)) / image.sum()
    assert (middle - 13.5).abs().max() <= 0.6
    assert image[0, :3].max() < 0.05


def test_a_digit_of_mnist_stays_as_it_is(client):
    digit = sample_digits("test").images[4]
    image, inverted = upload(client, Image.fromarray(digit[0].numpy()))
    assert not inverted
    assert torch.equal((image * 255).round().byte(), digit)
    assert upload(client, Image.fromarray(digit[0].numpy()), invert="yes")[1]


def test_a_digit_on_a_larger_canvas(client):
    digit = sample_digits("test").images[4]
    image, _ = upload(client, Image.fromarray(digit[0].numpy()), model="pairs")
    assert image.shape == (1, 36, 36)
    assert torch.equal((image[:, 4:32, 4:32] * 255).round().byte(), digit)


def test_an_enlarged_digit_comes_back_nearly_the_same():
    """MNIST's rule applied to a digit of MNIST, eight times as large, is nearly the digit itself."""
    digit = sample_digits("test").images[11, 0].numpy()
    large = np.asarray(Image.fromarray(digit).resize((224, 224), Image.Resampling.BICUBIC))
    again = find_digit(large.astype(np.float64)).pixels
    # a shift by one pixel and a blur are allowed, another shape is not
    shifted = [np.roll(again, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    overlap = max(float(np.corrcoef(one.ravel(), digit.ravel())[0, 1]) for one in shifted)
    assert overlap > 0.9


def test_colour_pictures_fit_inside(client):
    pixels = np.zeros((40, 48, 3), dtype=np.uint8)
    pixels[..., 0] = 255
    image, inverted = upload(client, Image.fromarray(pixels), model="colour")
    assert not inverted
    assert image.shape == (3, 20, 24)
    assert image.mean((1, 2)).tolist() == [1, 0, 0]


def test_an_empty_sheet_is_black(client):
    image, inverted = upload(client, Image.new("L", (64, 64), 255))
    assert inverted
    assert image.max() == 0


def test_transparent_and_large_pictures(client):
    picture = Image.new("RGBA", (1500, 1000), (0, 0, 0, 0))
    picture.paste((0, 0, 0, 255), (700, 300, 800, 700))
    image, inverted = upload(client, picture)
    assert inverted
    assert image.max() > 0.9


def paper_seven() -> Image.Image:
    sheet = Image.new("L", (300, 400), 240)
    ImageDraw.Draw(sheet).line([(80, 60), (220, 60), (120, 340)], fill=20, width=30)
    return sheet


@pytest.mark.parametrize("kind", ["16 bits", "CMYK", "alpha", "palette", "GIF", "WEBP", "turned"])
def test_the_same_sheet_in_every_form_is_the_same_picture(client, kind):
    sheet = paper_seven()
    expected, _ = upload(client, sheet)
    black = [Image.new("L", sheet.size, 0)] * 2  # later frames
    turned = Image.Exif()
    turned[0x0112] = 6
    forms = {
        "16 bits": lambda: upload(client, Image.fromarray(np.asarray(sheet).astype(np.uint16) * 257)),
        "CMYK": lambda: upload(client, sheet.convert("CMYK"), "JPEG"),
        "alpha": lambda: upload(client, sheet.convert("LA")),
        "palette": lambda: upload(client, sheet.convert("P")),
        "GIF": lambda: upload(client, sheet, "GIF", save_all=True, append_images=black),
        "WEBP": lambda: upload(client, sheet, "WEBP", save_all=True, append_images=black),
        "turned": lambda: upload(client, sheet.rotate(90, expand=True), "JPEG", exif=turned),
    }
    image, inverted = forms[kind]()
    assert inverted
    torch.testing.assert_close(image, expected, rtol=0, atol=0.03)


def test_a_faint_and_thin_stroke_is_drawn_in_full(client):
    """Pencil on paper in a shaded room: its box counts, and what is left of it after scaling is made white again."""
    sheet = np.full((400, 400), 170, dtype=np.uint8)
    sheet[100:300, 199:201] = 130
    sheet[100:104, 150:250] = 160  # fainter still, a quarter of the contrast
    image, _ = upload(client, Image.fromarray(sheet))
    assert image.max() == 1
    columns = (image[0] > 0.02).any(0).nonzero()
    assert int(columns.max() - columns.min()) + 1 == 10  # both strokes are in the box


def test_a_bright_colour_picture_stays_as_it_is(client):
    image, inverted = upload(client, Image.new("RGB", (48, 40), (250, 240, 230)), model="colour")
    assert not inverted
    assert image.min() > 0.89


def test_more_pixels_than_the_limit_are_refused_before_they_are_unpacked(client):
    file = io.BytesIO()
    Image.new("1", (5001, 5000)).save(file, "PNG")
    answer = client.post("/api/upload?model=small", content=file.getvalue())
    assert answer.status_code == 400
    assert "5001×5000 pixels, the limit is 25,000,000" in answer.json()["error"]
