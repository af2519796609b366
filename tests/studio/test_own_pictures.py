"""A picture of one's own is the same to ``evaluate``, to ``predict`` and to an upload in the studio."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

import torchcaps
from torchcaps.data import load, sample_digits
from torchcaps.data.window import to_unit_float
from torchcaps.eval import choose_examples, evaluate, load_model, open_run
from torchcaps.eval.pictures import named_classes, picture_form, read_pictures
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors, unpack_tensors

FORMS = {
    "grey": ((1, 28, 28), "size = 28"),
    "colour": ((3, 24, 24), "size = 24"),
    "standardised": ((1, 28, 28), 'size = 32\naugment = [{name = "crop", size = 28}, {name = "standardize"}]'),
    "cropped": ((1, 28, 28), 'augment = [{name = "crop", size = 28}]'),
    "placed": ((1, 40, 40), 'size = 28\naugment = [{name = "place", size = 40}]'),
}


def own_run(folder, shape, data, count):
    """Grey pictures of all sizes with bright borders, as X-rays have them, and a network that learned from them."""
    random = np.random.default_rng(0)
    for split, number in (("train", 4), ("test", count)):
        for n in range(number):
            height, width = random.integers(20, 90, 2)
            depth = (height, width, 3) if shape[0] == 3 else (height, width)
            pixels = random.integers(0, 120, depth, dtype=np.uint8)
            edge = max(2, min(height, width) // 8)
            pixels[:edge] = pixels[-edge:] = pixels[:, :edge] = pixels[:, -edge:] = 240
            place = folder / "pictures" / split / "ab"[n % 2]
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(place / f"{n:03}.png")
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", image_shape=shape, num_classes=2, conv_channels=8, primary_types=2)
    run = folder / "run"
    model.save_pretrained(run / "final")
    source = f'source = "folder:{folder / "pictures"}"'
    (run / "recipe.toml").write_text(f'name = "own"\n[model]\nname = "capsnet"\n[data]\n{source}\n{data}\n')
    facts = {"data": {"classes": ["a", "b"], "read_as": [shape[0], 64, 64]}}  # 64: the sizes differ, none is asked for
    (run / "environment.json").write_text(json.dumps(facts))
    return run


@pytest.mark.parametrize(("kind", "count"), [("grey", 200), *((kind, 12) for kind in list(FORMS)[1:])])
def test_upload_is_predict_is_evaluate(tmp_path, kind, count):
    folder = own_run(tmp_path, *FORMS[kind], count)
    run, model = open_run(folder), load_model(folder)
    examples = choose_examples(run, model)
    measured = examples.images(torch.arange(count))
    files = sorted((tmp_path / "pictures" / "test").glob("*/*.png"))  # class by class, as the folder is read
    predicted = read_pictures(files, run, model)
    assert not any(predicted.inverted)
    assert torch.equal(predicted.images, measured)
    with TestClient(create_app(Catalogue([folder])), base_url="http://127.0.0.1") as client:
        uploads = []
        for file in files:
            answer = client.post("/api/upload?model=run", content=file.read_bytes())
            assert answer.status_code == 200, answer.text
            assert b'"inverted":"false"' in answer.content
            uploads.append((unpack_tensors(answer.content)["image"] * 255).round().byte())  # as the page keeps them
        seen = torch.stack(uploads)
        assert torch.equal(picture_form(run, model).prepared(seen), measured)
        answer = client.post(
            "/api/models/run/forward", content=pack_tensors({"images": seen[:12]}), headers={"content-type": MEDIA_TYPE}
        )
        lengths = unpack_tensors(answer.content)["lengths"]
    scores = evaluate(model, examples.split, augment=examples.augment).scores
    with torch.no_grad():
        assert torch.equal(model(predicted.images).scores, scores)
        assert torch.equal(lengths, model(predicted.images[:12]).scores)


@pytest.mark.parametrize(
    ("source", "white_on_black", "digits"),
    [
        ("mnist", True, True),
        ("fashion-mnist", True, False),
        ("pneumoniamnist", False, False),
        ("npz:rays.npz", False, False),
    ],
)
def test_only_what_is_published_white_on_black_is_inverted(tmp_path, source, white_on_black, digits):
    model = torchcaps.create_model("small-cnn", channels=4, hidden=16)
    model.save_pretrained(tmp_path / "final")
    (tmp_path / "recipe.toml").write_text(f'[data]\nsource = "{source}"\n')
    names = "0123456789" if source != "fashion-mnist" else "abcdefghij"
    (tmp_path / "environment.json").write_text(json.dumps({"data": {"classes": list(names)}}))
    form = picture_form(open_run(tmp_path), model)
    assert (form.white_on_black, form.digits) == (white_on_black, digits)
    bright = Image.new("L", (28, 28), 230)
    assert form.seen(bright).inverted == white_on_black
    assert form.seen(bright, "no").inverted is False
    assert torch.equal(form.seen(bright, "yes").pixels, torch.full((1, 28, 28), 25, dtype=torch.uint8))


@pytest.mark.parametrize(("num_classes", "inverted"), [(10, True), (2, False)])
def test_without_a_recipe_only_a_network_of_digits_inverts(tmp_path, num_classes, inverted):
    model = torchcaps.create_model("capsnet", num_classes=num_classes, conv_channels=8, primary_types=2)
    model.save_pretrained(tmp_path)
    form = picture_form(open_run(tmp_path), model)
    assert (form.white_on_black, form.digits) == (inverted, inverted)


def test_a_capsule_of_the_middle_is_none_and_two_are_named_of_a_pair(pairs_run, small_run):
    scores = torch.tensor([[0.1] * 8 + [0.5, 0.3], [0.1] * 8 + [0.51, 0.3]])
    for folder, named in ((small_run, [8]), (pairs_run, [8, 9])):
        run, model = open_run(folder), load_model(folder)
        assert named_classes(run, model, scores, [False, False]) == [[], named]
        assert named_classes(run, model, scores, [False, True]) == [[], []]
        cnn = torchcaps.create_model("small-cnn", channels=4, hidden=16)
        assert named_classes(run, cnn, scores, [False, True]) == [named, []]


def test_the_threshold_keeps_digits_and_refuses_clothes():
    """It is the one of pictures that show any number of classes; a network of digits bears it out."""
    run, model = open_run("capsnet-mnist"), load_model("capsnet-mnist")
    shares = []
    for images in (sample_digits("test").images[:100], load("fashion-sample").test.images[:100]):
        with torch.no_grad():
            scores = model(to_unit_float(images)).scores
        shares.append(sum(map(bool, named_classes(run, model, scores, [False] * len(scores)))) / len(scores))
    assert shares[0] >= 0.99
    assert shares[1] <= 0.2
