import json
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch
from torch import nn

import torchcaps
from torchcaps.errors import TorchcapsError
from torchcaps.models import ClassifierOutput, Model, SmallCNN, registry

SMALL = {
    "capsnet": dict(image_shape=(1, 20, 20), num_classes=3, conv_channels=4, primary_types=2),
    "capsnet-deep": dict(
        image_shape=(2, 12, 13), num_classes=3, channels=4, types=(2, 3), depth=1, dim=3, decoder_hidden=(8,)
    ),
    "efficient-capsnet": dict(image_shape=(2, 14, 16), num_classes=3, decoder="fc", decoder_hidden=(8,)),
    "matrix-capsules": dict(image_shape=(2, 17, 20), num_classes=3, A=4, B=2, C=3, D=2, pose_size=2),
    "small-cnn": dict(image_shape=(3, 20, 17), num_classes=3, channels=4, hidden=8, multi_label=True),
    "baseline-cnn": dict(image_shape=(1, 8, 8), num_classes=3),
    "baseline-cnn-multimnist": dict(image_shape=(1, 8, 8), num_classes=3),
}


def test_every_model_is_tested_here():
    assert set(torchcaps.list_models()) == set(SMALL)
    assert torchcaps.list_models("*cnn*") == ["baseline-cnn", "baseline-cnn-multimnist", "small-cnn"]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_model_trains_saves_and_loads(name, tmp_path):
    model = torchcaps.create_model(name, **SMALL[name])
    images = torch.rand(4, *model.image_shape)
    outputs = model.training_outputs(images, torch.tensor([0, 1, 2, 0]))
    sum(output.sum() for output in outputs).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    model.save_pretrained(tmp_path / "saved")
    assert {"config.json", "model.safetensors"} <= {file.name for file in (tmp_path / "saved").iterdir()}
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["architecture"] == name
    again = torchcaps.from_pretrained(tmp_path / "saved")
    assert type(again) is type(model)
    assert again.image_shape == model.image_shape
    model.eval()
    again.eval()
    scores = model(images).scores
    assert torch.equal(again(images).scores, scores)
    assert scores.shape == (4, 3)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("name", sorted(SMALL))
def test_summary_counts_what_a_real_step_keeps(name):
    model = torchcaps.create_model(name, **SMALL[name])
    summary = model.summary(batch_size=5, show=False)
    assert summary.parameters == sum(p.numel() for p in model.parameters())
    assert sum(layer.parameters for layer in summary.layers) == summary.parameters
    assert summary.state_bytes == 16 * summary.parameters  # weight, gradient and Adam's two averages, 4 bytes each
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = model.training_outputs(torch.rand(5, *model.image_shape), torch.zeros(5, dtype=torch.int64))
    real = sum(storage.nbytes() for storage in kept.values())
    assert len(outputs) > 0
    assert summary.activation_bytes == real
    assert f"{summary.parameters:,}" in str(summary)
    assert model.summary(10, show=False).activation_bytes > 1.9 * summary.activation_bytes
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        model.summary(0)


def test_summary_counts_votes_where_there_are_any():
    def working_bytes(**settings):
        model = torchcaps.create_model("capsnet", conv_channels=4, primary_types=4, **settings)
        return model.summary(batch_size=64, show=False).working_bytes

    votes = working_bytes(iterations=3)
    assert working_bytes(routing="fixed-point") == working_bytes(routing="em") == votes
    assert working_bytes(iterations=1) == working_bytes(routing="average") < votes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_the_whole_network_in_another_type_and_memory_format(name, dtype):
    model = torchcaps.create_model(name, **SMALL[name]).eval()
    images, classes = torch.rand(2, *model.image_shape), torch.tensor([0, 1])
    expected = model.training_outputs(images, classes)
    model.to(dtype, memory_format=torch.channels_last)
    found = model.training_outputs(images.to(dtype, memory_format=torch.channels_last), classes)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype in (dtype, torch.promote_types(dtype, torch.float32))
        torch.testing.assert_close(one.float(), other, rtol=0.05, atol=0.05)


def test_a_save_that_fails_leaves_the_old_files(tmp_path, monkeypatch):
    model = torchcaps.create_model("capsnet", **SMALL["capsnet"])
    model.save_pretrained(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()

    def full_disk(*_args, **_keywords):
        raise OSError("No space left on device")

    monkeypatch.setattr(type(model), "_save_pretrained", full_disk)
    with pytest.raises(OSError, match="No space left"):
        model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".saving-")]


def test_weights_that_lack_a_layer_are_refused(tmp_path, capsys):
    torchcaps.create_model("capsnet", **SMALL["capsnet"]).save_pretrained(tmp_path)
    weights = safetensors.torch.load_file(tmp_path / "model.safetensors")
    del weights["classes.weight"]
    safetensors.torch.save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(TorchcapsError, match=r"belong to another network .*classes\.weight"):
        torchcaps.from_pretrained(tmp_path)
    assert "classes.weight" in torchcaps.from_pretrained(tmp_path, strict=False).state_dict()
    assert capsys.readouterr().out == ""


def test_a_function_cannot_be_saved(tmp_path):
    model = torchcaps.create_model("capsnet", **SMALL["capsnet"], routing=lambda votes, bias: votes.mean(1) + bias)
    with pytest.raises(ValueError, match="is a function, which a file cannot hold"):
        model.save_pretrained(tmp_path)


def test_wrong_names_and_folders(tmp_path):
    with pytest.raises(ValueError, match=r"unknown model 'resnet'; choose from .*'capsnet'"):
        torchcaps.create_model("resnet")
    with pytest.raises(TypeError, match="no setting 'primary_type'; did you mean 'primary_types'"):
        torchcaps.create_model("capsnet", primary_type=3)
    with pytest.raises(TorchcapsError, match=r"holds no config\.json"):
        torchcaps.from_pretrained(tmp_path)
    with pytest.raises(TorchcapsError, match="neither a folder"):
        torchcaps.from_pretrained(tmp_path / "missing")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TorchcapsError, match=r"has no model\.safetensors"):
        torchcaps.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    for foreign in ("{}", "[1]", "null", '"architecture"', "{"):
        (tmp_path / "config.json").write_text(foreign)
        with pytest.raises(TorchcapsError, match=r"config\.json is damaged"):
            torchcaps.from_pretrained(tmp_path)
    for other in ("resnet", ["capsnet"]):
        (tmp_path / "config.json").write_text(json.dumps({"architecture": other}))
        with pytest.raises(TorchcapsError, match=r"(resnet|capsnet).*, which is not known here"):
            torchcaps.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"architecture": "small-cnn", "chanels": 4}')
    with pytest.raises(TorchcapsError, match="has no setting 'chanels'; did you mean 'channels'"):
        torchcaps.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"architecture": "small-cnn"}')
    with pytest.raises(TorchcapsError, match="damaged or cut short"):
        torchcaps.from_pretrained(tmp_path)


def test_a_folder_that_is_missing_is_not_looked_up_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_a, **_k: pytest.fail("asked the hub"))
    for name in ("runs/mnist", "mnist/", "~/mnist"):
        with pytest.raises(TorchcapsError, match="neither a folder"):
            torchcaps.from_pretrained(name)


def test_own_weights_come_before_those_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path))
    torchcaps.create_model("small-cnn", channels=2, hidden=4).save_pretrained(tmp_path / "capsnet-mnist")
    assert torchcaps.from_pretrained("capsnet-mnist").architecture == "small-cnn"


def test_saving_keeps_a_card_and_is_for_everybody(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "README.md").write_text("my own words")
    torchcaps.create_model("small-cnn", channels=2, hidden=4).save_pretrained("~/net")
    assert (tmp_path / "net" / "README.md").read_text() == "my own words"
    assert (tmp_path / "net" / "model.safetensors").stat().st_mode & 0o777 == 0o644
    assert torchcaps.from_pretrained("~/net").settings["channels"] == 2


def test_a_network_is_pushed_under_the_name_of_its_folder(tmp_path, monkeypatch):
    pushed = {}

    class Hub:
        def __init__(self, token=None):
            pass

        def create_repo(self, repo_id, **_keywords):
            return SimpleNamespace(repo_id=f"me/{repo_id}")

        def upload_folder(self, repo_id, folder_path, **_keywords):
            pushed[repo_id] = json.loads((folder_path / "config.json").read_text())["architecture"]
            return "address"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Hub)
    model = torchcaps.create_model("small-cnn", channels=2, hidden=4)
    assert model.push_to_hub("one") == model.save_pretrained(tmp_path / "two", push_to_hub=True) == "address"
    assert pushed == {"me/one": "small-cnn", "me/two": "small-cnn"}
    assert (tmp_path / "two" / "model.safetensors").is_file()


def test_a_model_of_your_own(monkeypatch):
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))

    @torchcaps.register_model("linear")
    class Linear(Model):
        def __init__(self, num_classes: int = 2) -> None:
            super().__init__()
            self.layer = nn.Linear(4, num_classes)

        def forward(self, images):
            logits = self.layer(images.flatten(1))
            return ClassifierOutput(logits, logits.softmax(1))

    assert torchcaps.create_model("linear", num_classes=3)(torch.rand(2, 1, 2, 2)).scores.shape == (2, 3)
    with pytest.raises(ValueError, match="exists already"):
        torchcaps.register_model("linear")(Linear)


def test_too_small_for_pooling():
    with pytest.raises(ValueError, match="too small to be halved 3 times"):
        SmallCNN(image_shape=(1, 7, 9))
