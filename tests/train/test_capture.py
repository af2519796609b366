"""The captured and compiled step takes the steps of the plain one, most of it on a GPU only."""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref

import pytest
import torch

from torchcaps.train import engine, fit, load_recipe
from torchcaps.train.capture import wants_compile
from torchcaps.train.distributed import World
from torchcaps.train.feed import Feed, load_source
from torchcaps.train.interrupt import OutOfTimeError
from torchcaps.train.recipe import TrainingSection
from torchcaps.train.step import TrainingStep
from training_runs import losses, random_source, records, same_weights, tiny_recipe, train_tiny, weights

gpu = pytest.mark.gpu
# The compiler's advice on tf32 must not make it give up, as any warning does where warnings are errors.
pytestmark = pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")


@pytest.fixture(autouse=True)
def _as_users_run_it(_seeded_and_poisoned):
    """Deterministic algorithms are for the other tests: some kernels of a GPU have none."""
    torch.use_deterministic_algorithms(False)


def run(folder, *changes):
    recipe = tiny_recipe("training.steps=12", "training.precision=fp32", "optimizer.clip_norm=0.1", *changes)
    return fit(recipe, run_dir=folder, device="cuda", progress=False).folder


@gpu
def test_a_captured_run_has_the_losses_of_a_plain_one(tmp_path):
    plain = run(tmp_path / "plain", "training.capture=off", "training.compile=off")
    captured = run(tmp_path / "captured", "training.capture=on", "training.compile=off")
    assert records(captured)[-1]["mode"] == "eager in a CUDA graph"
    assert records(plain)[-1]["mode"] == "eager"
    assert losses(captured) == pytest.approx(losses(plain), rel=1e-4)


@gpu
def test_a_compiled_and_captured_run_has_the_losses_of_a_plain_one(tmp_path):
    plain = run(tmp_path / "plain", "training.capture=off", "training.compile=off")
    compiled = run(tmp_path / "compiled", "training.capture=on", "training.compile=on")
    assert records(compiled)[-1]["mode"] == "compiled in a CUDA graph"
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-3)


@gpu
def test_a_captured_step_that_looks_uphill_has_the_losses_of_a_plain_one(tmp_path):
    plain = run(tmp_path / "plain", "training.capture=off", "training.compile=off", "optimizer.sharpness=0.1")
    compiled = run(tmp_path / "compiled", "training.capture=on", "training.compile=on", "optimizer.sharpness=0.1")
    assert records(compiled)[-1]["mode"] == "compiled in a CUDA graph"
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-3)


@gpu
def test_captured_pairs_cross_the_end_of_an_epoch(tmp_path):
    changes = ("data.task=multimnist", "data.augment=[]", "training.batch_size=300")
    plain = run(tmp_path / "plain", "training.capture=off", "training.compile=off", *changes)
    captured = run(tmp_path / "captured", "training.compile=off", *changes)
    assert losses(captured) == pytest.approx(losses(plain), rel=1e-4)


@pytest.mark.parametrize(
    ("device", "compiled"),
    [("cpu", "off"), pytest.param("cuda", "off", marks=gpu), pytest.param("cuda", "on", marks=gpu)],
)
def test_dropout_is_drawn_anew_in_every_step(device, compiled, tmp_path):
    """One batch is the whole set, nothing is augmented and the rate is next to nothing: dropout alone is left."""
    changes = ("training.batch_size=100", "data.augment=[]", "training.ema=0.0", "training.precision=fp32")
    changes += ("optimizer.lr=1e-12", "schedule.name=constant", "schedule.floor=0.0", f"training.compile={compiled}")
    found, source = {}, random_source((1, 28, 28), count=100)
    for chance in (0.0, 0.5):
        recipe = tiny_recipe(*changes, f"model.capsule_dropout={chance}")
        folder = fit(recipe, run_dir=tmp_path / str(chance), device=device, source=source, progress=False).folder
        assert ("CUDA graph" in records(folder)[-1]["mode"]) == (device == "cuda")
        found[chance] = sorted(losses(folder))
    rounding = found[0.0][-1] - found[0.0][0]
    steps_apart = min(after - before for before, after in itertools.pairwise(found[0.5]))
    assert steps_apart > rounding  # no two of eight steps silence the same capsules


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu)])
@pytest.mark.parametrize("name", ["mnist-official", "multimnist-paper"])
def test_a_compiled_batch_holds_the_same_pictures(name, device):
    """Traced, and on a GPU also generated, for an epoch's first step and for one after its end."""
    recipe = load_recipe(name, ["data.source=mnist-sample", "training.batch_size=32"])
    feed = Feed.build(recipe, load_source(recipe, None), World(torch.device(device)), channels_last=False)
    backend = "inductor" if device == "cuda" else "aot_eager"  # what generates code for a CPU takes long
    compiled = torch.compile(feed.batch, dynamic=False, fullgraph=True, backend=backend)
    for number in (0, 40):
        feed.loader.prepare(number)
        step = torch.tensor(number, device=device)
        for mine, theirs in zip(compiled(step), feed.batch(step), strict=True):
            assert torch.equal(mine, theirs)


@gpu
def test_a_gpu_trains_like_the_cpu(tmp_path):
    cpu = fit(tiny_recipe(), run_dir=tmp_path / "cpu", device="cpu", progress=False).folder
    cuda = fit(tiny_recipe("training.precision=fp32"), run_dir=tmp_path / "gpu", device="cuda", progress=False).folder
    assert losses(cuda) == pytest.approx(losses(cpu), rel=1e-2)


@pytest.mark.parametrize(
    ("setting", "device", "steps", "wanted"),
    [
        ("auto", "cuda", 10_000, True),
        ("auto", "cuda", 10, False),
        ("auto", "cpu", 10_000, False),
        ("on", "cpu", 1, True),
        ("off", "cuda", 10_000, False),
    ],
)
def test_when_to_compile(setting, device, steps, wanted):
    section = TrainingSection(steps=steps, compile=setting)
    assert wants_compile(section, torch.device(device), steps) is wanted


@pytest.mark.parametrize(("broken", "mode", "notes"), [({"batch"}, "compiled", 1), ({"batch", "network"}, "eager", 2)])
def test_what_cannot_be_compiled_runs_as_it_is(tmp_path, monkeypatch, broken, mode, notes):
    def compiler(target, **_options):
        part = "network" if isinstance(target, torch.nn.Module) else "batch"

        def fail(*_arguments):
            raise RuntimeError(f"no code for the {part}")

        return fail if part in broken else target

    plain = train_tiny(tmp_path / "plain", "training.compile=off")
    monkeypatch.setattr(torch, "compile", compiler)
    fallen_back = train_tiny(tmp_path / "fallen-back", "training.compile=on")
    assert same_weights(weights(fallen_back), weights(plain))
    assert records(fallen_back)[-1]["mode"] == mode
    assert [note["text"].split(": ", 1)[1] for note in records(fallen_back, "note")] == [
        "RuntimeError: no code for the batch",
        "RuntimeError: no code for the network",
    ][:notes]


@pytest.mark.parametrize("seconds", [None, 0])
def test_nothing_compiled_is_left_of_a_run(tmp_path, monkeypatch, seconds):
    """A compiled module has copies of all attributes, and would keep the process group that a wrapper of it holds."""
    compiled, steps = [], []

    def compiler(target, **_options):
        compiled.append(weakref.ref(copy := functools.wraps(target)(lambda *inputs: target(*inputs))))
        return copy

    def keep_step(*arguments):
        steps.append(TrainingStep(*arguments))
        return steps[-1]

    monkeypatch.setattr(torch, "compile", compiler)
    monkeypatch.setattr(engine, "TrainingStep", keep_step)
    with pytest.raises(OutOfTimeError) if seconds == 0 else contextlib.nullcontext():
        train_tiny(tmp_path / "run", "training.compile=on", seconds=seconds)
    assert [copy() for copy in compiled] == [None, None]
    assert isinstance(steps[0].objective, torch.nn.Module)
