"""What the interface says about models is what PyTorch says."""

from __future__ import annotations

import shutil

import pytest
import torch
from starlette.testclient import TestClient

from torchcaps import ops
from torchcaps.data import sample_digits
from torchcaps.eval import load_model
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.affine import KINDS, slider_values, transform
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors

EXACT = dict(rtol=1e-5, atol=1e-6)  # the same operations in another batch


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return sample_digits("test").images[:3].float() / 255


def test_the_list_of_models(client):
    small, cnn, colour, pairs = client.get("/api/models").json()
    assert [model["id"] for model in (small, cnn, colour, pairs)] == ["small", "cnn", "colour", "pairs"]
    assert (small["kind"], cnn["kind"]) == ("capsnet", "cnn")
    assert (small["source"], small["trained_on"], colour["trained_on"]) == ("run", "mnist-sample", None)
    assert small["checkpoints"] == [{"step": 40, "id": "small@40"}]
    assert small["primary"] == {"rows": 6, "columns": 6, "types": 4, "dim": 8, "stride": 2}
    assert small["decoder"] == {"kind": "fully-connected", "sizes": [160, 64, 128, 784]}
    assert (small["iterations"], small["leaky"], small["bias"], small["mask_input"]) == (3, False, True, 160)
    assert (colour["source"], colour["image_shape"], colour["classes"]) == ("folder", [3, 20, 24], list("01234"))
    assert (colour["leaky"], colour["bias"], colour["examples"]) == (True, False, None)
    assert colour["decoder"] == {"kind": "convolutional", "sizes": []}
    assert (pairs["multi"], pairs["image_shape"]) == (2, [1, 36, 36])
    assert cnn["capsule_dim"] is None
    assert cnn["digits"]


def test_forward(ask, small_run, images):
    model = load_model(small_run)
    with torch.no_grad():
        out = model(images)
        drawn = model.reconstruct(out.capsules, out.lengths.argmax(1))
    answer = ask("/api/models/small/forward", images=images)
    torch.testing.assert_close(answer["lengths"], out.lengths, **EXACT)
    torch.testing.assert_close(answer["capsules"], out.capsules, **EXACT)
    torch.testing.assert_close(answer["reconstruction"], drawn, **EXACT)
    bytes_answer = ask("/api/models/small/forward", images=sample_digits("test").images[:3])
    torch.testing.assert_close(bytes_answer["lengths"], out.lengths, **EXACT)


def test_forward_of_a_cnn_and_of_colour(ask, cnn_folder, colour_folder, images):
    with torch.no_grad():
        expected = load_model(cnn_folder)(images).probabilities
        colour = torch.rand(2, 3, 20, 24)
        out = load_model(colour_folder)(colour)
    torch.testing.assert_close(ask("/api/models/cnn/forward", images=images)["probabilities"], expected, **EXACT)
    torch.testing.assert_close(ask("/api/models/colour/forward", images=colour)["lengths"], out.lengths, **EXACT)


def test_the_decoder_can_be_run_from_its_weights(ask, small_run):
    model = load_model(small_run)
    weights = ask("/api/models/small/decoder?dtype=f32")
    capsules, classes = torch.randn(2, 10, 16), torch.tensor([3, 7])
    x = torchcaps_masked(capsules, classes)
    for layer in range(3):
        x = x @ weights[f"layer{layer}.weight"].T + weights[f"layer{layer}.bias"]
        x = x.relu() if layer < 2 else x.sigmoid()
    with torch.no_grad():
        torch.testing.assert_close(x.reshape(2, 1, 28, 28), model.reconstruct(capsules, classes), **EXACT)
    assert ask("/api/models/small/decoder")["layer0.weight"].dtype == torch.float16


def torchcaps_masked(capsules: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    masked = torch.zeros_like(capsules)
    for row, j in enumerate(classes):
        masked[row, j] = capsules[row, j]
    return masked.flatten(1)


def test_every_decoder_draws_on_request(ask, colour_folder, client):
    capsules = torch.zeros(1, 5, 6)
    capsules[0, 2] = torch.rand(6)
    with torch.no_grad():
        expected = load_model(colour_folder).reconstruct(capsules, torch.tensor([2]))
    torch.testing.assert_close(ask("/api/models/colour/decode", capsules=capsules)["pictures"], expected, **EXACT)
    refused = client.get("/api/models/colour/decoder")
    assert refused.status_code == 404
    assert "decode" in refused.json()["error"]


@pytest.mark.parametrize("model_id", ["small", "colour"])
def test_votes_lead_to_the_capsules_by_routing(ask, catalogue, model_id):
    model = catalogue.network(model_id).model
    image = torch.rand(model.image_shape)
    found = ask(f"/api/models/{model_id}/votes", image=image)
    capsules = ops.dynamic_routing(found["votes"][None], 3, found["bias"], model.classes.routing.leaky)
    with torch.no_grad():
        out = model(image[None])
    torch.testing.assert_close(capsules, out.capsules, **EXACT)
    lengths = ops.capsule_lengths(model.lower_capsules(image[None])[0]).detach()
    torch.testing.assert_close(found["primary_lengths"], lengths, **EXACT)
    assert ask(f"/api/models/{model_id}/votes?dtype=f16", image=image)["votes"].dtype == torch.float16
    trace = ask(f"/api/models/{model_id}/trace?iterations=3", image=image)
    torch.testing.assert_close(trace["outputs"][-1], out.capsules[0], **EXACT)
    assert trace["coefficients"].shape == (3, *found["votes"].shape[:2])


def test_trace_of_any_length(ask, images):
    long, short = (ask(f"/api/models/small/trace?iterations={R}", image=images[0]) for R in (10, 2))
    for name in ("coefficients", "logits", "outputs"):
        torch.testing.assert_close(long[name][:2], short[name], **EXACT)
    torch.testing.assert_close(long["coefficients"].sum(-1), torch.ones(10, 144), **EXACT)


def test_statistics_are_those_of_the_test_digits(ask, small_run, client):
    test = sample_digits("test")
    with torch.no_grad():
        capsules = load_model(small_run)(test.images.float() / 255).capsules
    found = ask("/api/models/small/statistics")
    of_class = capsules[test.labels == 3, 3]
    torch.testing.assert_close(found["mean"][3], of_class.mean(0), **EXACT)
    torch.testing.assert_close(found["std"][3], of_class.std(0, correction=0), **EXACT)
    assert found["count"].tolist() == [50] * 10
    wrong = int((capsules.norm(dim=-1).argmax(1) != test.labels).sum())
    assert client.get("/api/models").json()[0]["test_error"] == wrong / 500


@pytest.mark.parametrize("kind", KINDS)
def test_affine_over_the_whole_slider(ask, small_run, images, kind):
    found = ask(f"/api/models/small/affine?kind={kind}", image=images[1])
    assert found["images"].shape == (41, 1, 28, 28)
    assert torch.equal(found["images"][20], (images[1] * 255).round().byte())
    with torch.no_grad():
        expected = load_model(small_run)(found["images"].float() / 255).lengths
    torch.testing.assert_close(found["lengths"], expected, **EXACT)
    assert torch.equal(found["values"], slider_values(kind, (1, 28, 28)))


def test_transformations_go_the_way_they_say():
    image = torch.zeros(1, 9, 9, dtype=torch.uint8)
    image[0, 1, 4] = 200  # above the middle

    def brightest(kind: str, value: float) -> tuple[int, int]:
        place = int(transform(image, kind, torch.tensor([value]))[0, 0].int().argmax())
        return place // 9, place % 9

    assert brightest("rotate", 90.0) == (4, 7)
    assert brightest("shift-x", 2.0) == (1, 6)
    assert brightest("shift-y", 3.0) == (4, 4)
    assert brightest("shear", 45.0) == (1, 7)
    assert brightest("scale", 4 / 3) == (0, 4)


def test_a_run_that_trains_shows_new_checkpoints(tmp_path, small_run):
    run = tmp_path / "training"
    shutil.copytree(small_run / "checkpoints" / "step-00000040", run / "checkpoints" / "step-00000020")
    shutil.copy(small_run / "recipe.toml", run)
    with TestClient(create_app(Catalogue([run])), base_url="http://127.0.0.1") as client:
        body = {"content": pack_tensors({"image": torch.zeros(1, 28, 28)}), "headers": {"content-type": MEDIA_TYPE}}
        assert [c["step"] for c in client.get("/api/models").json()[0]["checkpoints"]] == [20]
        torch.manual_seed(1)
        other = load_model(small_run)
        other.reset_parameters()
        other.save_pretrained(run / "checkpoints" / "step-00000030")
        assert [c["id"] for c in client.get("/api/models").json()[0]["checkpoints"]] == ["training@20", "training@30"]
        answers = [client.post(f"/api/models/training{at}/forward", **body).content for at in ("@20", "@30", "")]
        assert answers[0] != answers[1] == answers[2]  # the plain id is the newest
        shutil.rmtree(run / "checkpoints" / "step-00000020")
        gone = client.post("/api/models/training@20/forward", **body)
        assert (gone.status_code, "no checkpoint" in gone.json()["error"]) == (404, True)


def test_a_model_that_is_removed_meanwhile_stays_in_memory_and_takes_no_other_with_it(tmp_path, small_run, cnn_folder):
    shutil.copytree(small_run / "final", tmp_path / "mine")
    catalogue = Catalogue([tmp_path / "mine", cnn_folder])
    with TestClient(create_app(catalogue), base_url="http://127.0.0.1") as client:
        body = pack_tensors({"image": torch.zeros(1, 28, 28)})
        before = client.post("/api/models/mine/forward", content=body).content
        shutil.rmtree(tmp_path / "mine")
        assert [model["id"] for model in client.get("/api/models").json()] == ["mine", "cnn"]
        assert client.post("/api/models/mine/forward", content=body).content == before
        catalogue._networks.clear()  # as when many checkpoints were looked at since
        assert [model["id"] for model in client.get("/api/models").json()] == ["cnn"]
        gone = client.post("/api/models/mine/forward", content=body)
        assert (gone.status_code, gone.json()["error"]) == (404, "mine cannot be read any more; choose another")
