"""Recipes: shipped ones are sound, files extend each other, and every mistake is named."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcaps.models import get_preset
from torchcaps.train import Recipe, RecipeError, fit, list_recipes, load_recipe, recipe_header, save_recipe
from torchcaps.train.overrides import check_one_length, parse_overrides
from torchcaps.train.recipe import ModelSection
from torchcaps.train.tables import differing_keys, merge_tables, recipe_from_table, recipe_to_table

SHIPPED = {
    "affnist",
    "affnist-baseline",
    "cifar10-official",
    "demo",
    "efficient-capsnet",
    "fashion",
    "folder",
    "matrix-capsules",
    "mnist-baseline",
    "mnist-best",
    "mnist-official",
    "mnist-open",
    "mnist-paper",
    "multimnist-baseline",
    "multimnist-best",
    "multimnist-official",
    "multimnist-paper",
}


def test_all_recipes_are_shipped():
    assert set(list_recipes()) >= SHIPPED


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_recipe_states_what_to_expect_and_survives_writing(name, tmp_path):
    header = "\n".join(recipe_header(name))
    for word in (f"torchcaps train {name}", "hardware:", "time:", "expect:"):
        assert word in header
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.description
    file = tmp_path / "copy.toml"
    file.write_text(save_recipe(recipe))
    assert load_recipe(file) == recipe


@pytest.mark.parametrize("name", ["mnist-paper", "mnist-official", "multimnist-paper", "multimnist-official"])
def test_recipes_carry_the_constants_of_their_preset(name):
    recipe = load_recipe(name)
    preset = get_preset(name.split("-")[1])
    assert recipe.model.settings["preset"] == preset.name
    assert recipe.model.settings["iterations"] == 3
    assert recipe.optimizer.lr == preset.learning_rate
    assert recipe.schedule.name == "exponential"
    assert recipe.schedule.decay_rate == preset.decay_rate
    assert recipe.schedule.floor == preset.learning_rate_floor
    assert recipe.training.batch_size == preset.batch_size
    assert recipe.data.validation == 0
    assert recipe.training.ema == 0
    if name.startswith("multi"):
        assert recipe.schedule.decay_steps == preset.multimnist_decay_steps
        assert recipe.data.variant == preset.name
    else:
        assert recipe.schedule.decay_steps == preset.decay_steps
        assert recipe.data.augment == ({"name": "shift", "pixels": preset.shift_pixels},)
        assert recipe.training.steps == (preset.steps or get_preset("official").steps)


def test_cifar_recipe_carries_the_constants_of_the_authors_code():
    recipe, preset = load_recipe("cifar10-official"), get_preset("official")
    settings = recipe.model.settings
    assert settings["primary_types"] == preset.cifar10_primary_types
    assert settings["padding"] == preset.cifar10_padding
    assert settings["leaky"] is preset.cifar10_leaky
    assert settings["decoder"] == preset.cifar10_decoder
    steps = {step["name"]: step for step in recipe.data.augment}
    assert steps["crop"]["size"] == preset.cifar10_crop
    assert steps["brightness"]["levels"] == preset.cifar10_brightness
    assert (steps["contrast"]["lower"], steps["contrast"]["upper"]) == preset.cifar10_contrast
    assert {"flip", "standardize"} <= steps.keys()


def test_affnist_canvas_is_that_of_the_preset():
    preset = get_preset("official")
    assert load_recipe("affnist").data.augment == ({"name": "place", "size": 28 + 2 * preset.affnist_pad},)


def test_extends_by_name_and_by_path(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "mnist-official"\n[optimizer]\nlr = 0.5\n')
    (tmp_path / "child.toml").write_text('extends = "mine.toml"\n[model]\niterations = 1\n')
    child = load_recipe(tmp_path / "child.toml")
    assert child.name == "child"
    assert child.optimizer.lr == 0.5
    assert child.model.settings == {"preset": "official", "iterations": 1}
    assert child.schedule == load_recipe("mnist-official").schedule


def test_recipes_of_one_name_in_two_folders_are_no_circle(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "a.toml").write_text('extends = "lib/b.toml"\n')
    (tmp_path / "lib" / "b.toml").write_text('extends = "a.toml"\n')
    (tmp_path / "lib" / "a.toml").write_text('extends = "demo"\n[optimizer]\nlr = 0.5\n')
    monkeypatch.chdir(tmp_path)
    assert load_recipe("a.toml").optimizer.lr == 0.5


def test_a_circle_of_extends_is_an_error(tmp_path):
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n')
    (tmp_path / "b.toml").write_text('extends = "a.toml"\n')
    with pytest.raises(RecipeError, match="circle"):
        load_recipe(tmp_path / "a.toml")


def test_another_model_does_not_inherit_settings():
    assert load_recipe("mnist-baseline").model.settings == {}
    assert load_recipe("mnist-official", ["model.iterations=1"]).model.settings["preset"] == "official"


def test_epochs_replace_steps_and_steps_replace_epochs():
    training = load_recipe("mnist-official", ["training.epochs=5"]).training
    assert (training.steps, training.epochs) == (0, 5.0)
    training = load_recipe("fashion", ["training.epochs=5", "training.steps=7"]).training
    assert (training.steps, training.epochs) == (7, 0.0)


@pytest.mark.parametrize("name", ["demo", "fashion"])  # of so many steps, of so many epochs
@pytest.mark.parametrize("changes", ["steps=4 epochs=0", "epochs=0 steps=4", "epochs=3 steps=4 epochs=0"])
def test_a_length_of_zero_undoes_nothing(name, changes):
    training = load_recipe(name, [f"training.{change}" for change in changes.split()]).training
    assert (training.steps, training.epochs) == (4, 0.0)
    own = load_recipe(name).training
    other = "training.epochs=0" if own.steps else "training.steps=0"
    assert load_recipe(name, [other]).training == own


def test_one_call_asks_for_one_length():
    with pytest.raises(
        RecipeError, match=r"training\.steps=2 and training\.epochs=3 are both given, but a run has one"
    ):
        check_one_length(["training.steps=2", "seed=1", "training.epochs=3"])
    check_one_length(["training.steps=2", "training.epochs=0"])
    check_one_length(["training.epochs=3", "training.epochs=0", "training.steps=2", "training.steps=5"])
    with pytest.raises(RecipeError, match="both given"):
        fit("demo", iter(["training.steps=2", "training.epochs=3"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("optimizer.lrr=1", r"no key optimizer\.lrr; did you mean optimizer\.lr\?"),
        ("optimiser.lr=1", "no key optimiser; did you mean optimizer"),
        ("zzz=1", "no key zzz; known here: name, description"),
        ("optimizer.lr=fast", "optimizer.lr must be a number, got 'fast'"),
        ("optimizer.lr=-1", "optimizer.lr must be a number above 0"),
        ("optimizer.lr=nan", "optimizer.lr must be a number above 0"),
        ("optimizer.weight_decay=inf", "optimizer.weight_decay must be a number from 0 to 1,000,000, got inf"),
        ("optimizer.eps=inf", "optimizer.eps must be a number above 0 and at most 1,000,000, got inf"),
        ("optimizer.clip_norm=nan", "optimizer.clip_norm must be a number from 0 to 1,000,000, got nan"),
        ("schedule.floor=inf", "schedule.floor must be a number from 0 to 1,000,000, got inf"),
        ("optimizer.lr=1e-8", "schedule.floor must be at most optimizer.lr, which is 1e-08, got 1e-06"),
        ("optimizer.name=sgd", "'adam', 'adamw'"),
        ("optimizer.betas=[0.9]", "2 entries, each a number from 0 to below 1"),
        ("optimizer.betas=[0.9, true]", "optimizer.betas must be a number, got True"),
        ("schedule.name=cosin", "'constant', 'exponential', 'cosine', 'linear'"),
        ("schedule.decay_rate=0", "above 0 and at most 1"),
        ("training.batch_size=1.5", "whole number, got 1.5"),
        ("training.batch_size=true", "whole number, got True"),
        ("training.ema=1", "from 0 to below 1"),
        ("training.precision=fp16", "'auto', 'fp32', 'bf16'"),
        ("training.steps=-3", r"^training\.steps must be a whole number from 0 to 1,000,000,000,000, got -3$"),
        ("training.epochs=-0.5", r"^training\.epochs must be a number from 0 to 1,000,000,000, got -0\.5$"),
        ("training.epochs=inf", "training.epochs must be a number from 0 to 1,000,000,000, got inf"),
        ("training.steps=0", "set training.steps or training.epochs"),
        ("data.validation=1", "from 0 to below 1"),
        ("data.fold=-1", "data.fold must be a whole number from 0 to 1,000,000, got -1"),
        ("data.fold=1", "data.validation must be above 0"),
        ("data.validation_consecutive=true", "data.validation must be above 0"),
        ("data.task=triple", "'single', 'multimnist'"),
        ("data.task=multimnist", "shifted already"),
        ("model.num_classes=3", "follows from the data"),
        ("log.keep=0", "from 1 to"),
        ("log=3", "log is a section"),
        ("seed=-1", "seed must be a whole number from 0"),
        ("seed=99999999999999999999", "seed must be a whole number from 0 to 9,223,372,036,854,775,807"),
        ("optimizer.lr", "not of the form key=value"),
        ("a.b.c=1", "too many dots"),
    ],
)
def test_mistakes_are_named(change, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("demo", [change])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.batch_size=1000000000", "training.batch_size must be a whole number from 1 to 1,000,000, got"),
        ("training.steps=9223372036854775807", "training.steps must be a whole number from 0 to 1,000,000,000,000"),
        ("training.epochs=1e300", "training.epochs must be a number"),
        ("data.size=1000000", "data.size must be a whole number from 0 to 4,096; 0 leaves pictures as they are"),
        ("optimizer.lr=1e30", "optimizer.lr must be a number"),
        ("log.keep=99999999999", "log.keep must be a whole number from 1 to 1,000,000"),
        ("seed=" + "9" * 5000, "seed must be a whole number, got '999"),
        ("model.primary_types=1000000000", "model.primary_types must be a whole number from 1 to 65,536"),
        ("model.iterations=1000000000", "model.iterations must be a whole number from 1 to 1,000"),
        ("model.primary_typs=3", "no setting 'primary_typs'; did you mean 'primary_types'"),
        ("data.augment=[{name='shift'}, 3]", "data.augment must be a table, got 3"),
        ("description=" + "[" * 100_001, "description must be a text of at most 100,000 letters"),
        ("a\nb=3", r"no key 'a\\nb'"),
        ("x" * 10_000 + "=3", "no key 'xxx"),
    ],
)
def test_hostile_values_are_named_in_a_line(change, message):
    with pytest.raises(RecipeError, match=message) as raised:
        load_recipe("demo", [change])
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "seed = " + "9" * 5000, "a." * 30_000 + "a = 1", "extends = 3"]
)
def test_hostile_files_are_named(tmp_path, text):
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(RecipeError, match=r"own\.toml"):
        load_recipe(tmp_path / "own.toml")


def test_files_that_cannot_be_read_are_named(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("lr = = 3")
    with pytest.raises(RecipeError, match="no valid TOML"):
        load_recipe(broken)
    with pytest.raises(RecipeError, match=r"there is no recipe file .*missing"):
        load_recipe(tmp_path / "missing.toml")
    with pytest.raises(RecipeError, match="no recipe is named 'mnist-offical'; did you mean 'mnist-official'"):
        load_recipe("mnist-offical")


def test_overrides_keep_text_and_read_toml():
    table = parse_overrides(["data.source=folder:a=b", "data.augment=[{name = 'flip'}]", "model.leaky=true", "seed=3"])
    assert table == {
        "data": {"source": "folder:a=b", "augment": [{"name": "flip"}]},
        "model": {"leaky": True},
        "seed": 3,
    }


def test_recipes_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        load_recipe("demo").optimizer.lr = 1.0


@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    rate=st.floats(1e-30, 1e6),
    seed=st.integers(0, 2**62),
    flag=st.booleans(),
)
def test_any_values_survive_the_way_through_a_file(text, rate, seed, flag):
    import tomllib

    table = {"description": text, "seed": seed, "model": {"name": "of mine", "leaky": flag, "note": text}}
    table |= {"optimizer": {"lr": rate}, "schedule": {"floor": 0.0}}
    recipe = recipe_from_table(merge_tables(recipe_to_table(load_recipe("demo")), table))
    assert recipe_from_table(tomllib.loads(save_recipe(recipe))) == recipe


def test_settings_from_python_survive_the_way_through_a_file(tmp_path):
    recipe = Recipe(model=ModelSection("capsnet", {"decoder_hidden": (16, 32), "routing": {"name": "em"}}))
    file = tmp_path / "recipe.toml"
    file.write_text(save_recipe(recipe), encoding="utf-8")
    assert differing_keys(load_recipe(file), recipe) == []
    with pytest.raises(RecipeError, match="a recipe cannot hold None"):
        save_recipe(Recipe(model=ModelSection("capsnet", {"primary_scale": None})))
