"""The networks that the studio was started with, their checkpoints and their test pictures."""

from __future__ import annotations

import contextlib
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torchcaps.data.sample import SAMPLES
from torchcaps.errors import TorchcapsError
from torchcaps.eval.metrics import PRESENCE_THRESHOLD
from torchcaps.eval.recipe_facts import recipe_facts
from torchcaps.eval.runs import Run
from torchcaps.models.shipped import read_card
from torchcaps.studio.example_sets import ExampleSet, example_set, sample_set
from torchcaps.studio.looking import Survey, survey
from torchcaps.studio.network import Network, load_network, open_named
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.routing_facts import RoutingFacts, routing_facts
from torchcaps.studio.schemas import CheckpointFacts, ModelFacts

__all__ = ["Catalogue"]

SPARE_NETWORKS = 12  # checkpoints that stay in memory while somebody scrubs through a run
MOST_SURVEYS = 64


@dataclass(frozen=True)
class _Item:
    id: str
    path: str
    run: Run
    shipped: bool
    examples: str | None

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Complete checkpoints of a run folder by step; new ones appear while it trains."""
        found = self.run.folder.glob("checkpoints/step-*/model.safetensors")
        numbered = [(file.parent.name.removeprefix("step-"), file.parent) for file in found]
        return sorted((int(step), folder) for step, folder in numbered if step.isdecimal())


class Catalogue:
    """Opens models by what the user typed and hands them out by id, from several threads at once.

    Args:
        paths: run folders, model folders, names of shipped weights, hub names.
        data_name: test pictures for all of them; left out, each has those of its own recipe.

    Attributes:
        remarks: what the user should know, one line each.

    Example:
        >>> import torchcaps
        >>> from torchcaps.studio import Catalogue
        >>> _ = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2).save_pretrained("small")
        >>> catalogue = Catalogue(["small"])
        >>> [facts.id for facts in catalogue.facts()], len(catalogue.examples())
        (['small'], 500)
    """

    def __init__(self, paths: Sequence[str | Path], data_name: str | None = None) -> None:
        if not paths:
            raise TorchcapsError("the studio needs at least one model; name a run folder, or train one first")
        self.remarks: list[str] = []
        self._lock = threading.RLock()
        self._items: dict[str, _Item] = {}
        self._networks: OrderedDict[tuple[str, int], Network] = OrderedDict()
        self._loaded: dict[str, tuple[str, int]] = {}  # by folder, the state that was read last
        self._surveys: OrderedDict[tuple[str, int], Survey] = OrderedDict()
        self._sets: dict[str, ExampleSet] = {}
        self._data_name = data_name
        for path in map(str, paths):
            self.add(path)
        digits = sample_set()
        self._sets.setdefault(digits.id, digits)

    def add(self, path: str) -> None:
        """Open one more model."""
        run, shipped = open_named(path)
        item = _Item(self._free_id(run), path, run, shipped, None)
        self._items[item.id] = item
        network = self._load(item, run, _key(run))
        try:
            found = example_set(run, network.model, self._data_name or (_embedded(run) if shipped else None))
        except TorchcapsError as error:
            self.remarks.append(f"no test pictures for {item.id}: {error}")
            return
        self._sets.setdefault(found.id, found)
        self._items[item.id] = replace(item, examples=found.id)

    def _free_id(self, run: Run) -> str:
        folder = run.folder.resolve()
        name = folder.parent.name if folder.name == "final" else run.folder.name or folder.name
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"
        number, free = 1, plain
        while free in self._items:
            number += 1
            free = f"{plain}-{number}"
        return free

    def facts(self) -> list[ModelFacts]:
        """Every model, with the checkpoints that are there now."""
        found = []
        with self._lock:
            for item in list(self._items.values()):
                with contextlib.suppress(RefusalError):  # neither on the disk nor in memory any more
                    found.append(self._facts(self._refreshed(item)))
        return found

    def network(self, model_id: str) -> Network:
        """The network of a model or of one of its checkpoints (``id@step``)."""
        with self._lock:
            item, run, key = self._resolve(model_id)
            if key not in self._networks:
                try:
                    self._load(item, run, key)
                except TorchcapsError as error:
                    raise RefusalError(f"{model_id} cannot be read any more; choose another", 404) from error
            self._networks.move_to_end(key)
            while len(self._networks) > len(self._items) + SPARE_NETWORKS:
                self._networks.popitem(last=False)
            return self._networks[key]

    def _load(self, item: _Item, run: Run, key: tuple[str, int]) -> Network:
        path = item.path if run is item.run else run.model_folder
        network = self._networks[key] = load_network(path, run, item.shipped)
        self._loaded[run.model_folder] = key
        return network

    def in_memory(self, model_id: str) -> Network | None:
        """The same when it is loaded already; never waits, so that an event loop may call it."""
        _, _, key = self._resolve(model_id)
        found = self._networks.get(key)
        with contextlib.suppress(KeyError):  # another thread may drop it at this very moment
            self._networks.move_to_end(key)
        return found

    def sources(self) -> list[str]:
        """Names of the sets of test pictures; the first is the default."""
        wanted = [item.examples for item in self._items.values() if item.examples is not None]
        return list(dict.fromkeys([*wanted, *self._sets]))

    def examples(self, source: str | None = None) -> ExampleSet:
        """A set of test pictures by name, or that of the first model."""
        name = self.sources()[0] if source is None else source
        if name not in self._sets:
            raise RefusalError(f"there are no test pictures of that name; choose from {', '.join(self.sources())}", 404)
        return self._sets[name]

    def examples_of(self, model_id: str) -> ExampleSet:
        """The test pictures that fit a model."""
        item, _, _ = self._resolve(model_id)
        if item.examples is None:
            raise RefusalError(f"no test pictures fit {item.id}; start the studio with --data", 404)
        return self._sets[item.examples]

    def survey(self, model_id: str) -> Survey:
        """The model over its test pictures; computed once for each checkpoint."""
        _, _, key = self._resolve(model_id)
        if key not in self._surveys:
            found = survey(self.network(model_id), self.examples_of(model_id))
            with self._lock:
                self._surveys[key] = found
                while len(self._surveys) > MOST_SURVEYS:
                    self._surveys.popitem(last=False)
        return self._surveys[key]

    def _resolve(self, model_id: str) -> tuple[_Item, Run, tuple[str, int]]:
        name, _, step = model_id.partition("@")
        item = self._items.get(name)
        if item is None:
            raise RefusalError(f"there is no such model; choose from {', '.join(self._items)}", 404)
        if not step:
            return item, item.run, self._state(item.run)
        folder = dict(item.checkpoints()).get(int(step)) if step.isdecimal() and len(step) < 12 else None
        if folder is None:
            raise RefusalError(f"{name} has no checkpoint of that step; GET /api/models lists those there are", 404)
        run = replace(item.run, model_folder=str(folder))
        return item, run, self._state(run)

    def _state(self, run: Run) -> tuple[str, int]:
        """Of the weights on the disk; where they are gone from there, what is in memory stays."""
        key = _key(run)
        return key if key[1] else self._loaded.get(run.model_folder, key)

    def _refreshed(self, item: _Item) -> _Item:
        """A run that is still training has another newest model than when the studio was started."""
        if not item.shipped and item.run.folder.is_dir() and not (item.run.folder / "config.json").is_file():
            try:
                item = replace(item, run=open_named(item.path)[0])
                self._items[item.id] = item
            except TorchcapsError:  # the folder is being written or was moved; what is in memory stays
                pass
        return item

    def _facts(self, item: _Item) -> ModelFacts:
        network = self.network(item.id)
        model, known = network.model, self._surveys.get(self._state(item.run))
        error = _card_error(item)
        if error is None and known is not None:
            error = known.error
        routing = routing_facts(model) or RoutingFacts()
        capsule_dim = network.capsule_dim if network.has_capsules else None
        steps = item.checkpoints()
        learned = recipe_facts(item.run).data
        fitting = item.examples is not None and self._sets[item.examples].fit(model)
        source: Literal["shipped", "run", "folder"] = "run" if steps or item.run.recipe else "folder"
        return ModelFacts(
            id=item.id,
            name=item.id,
            kind="capsnet" if network.has_capsules else "cnn",
            architecture=model.architecture,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            image_shape=list(model.image_shape),
            classes=list(network.classes),
            routing=routing.name,
            iterations=routing.iterations,
            leaky=routing.leaky,
            bias=routing.bias,
            scores=routing.scores,
            normalizes=routing.normalizes,
            in_page=network.page_loop is not None,
            standardized=network.standardize is not None,
            capsule_dim=capsule_dim,
            primary=network.primary_facts(),
            decoder=network.decoder_facts(),
            mask_input=None if capsule_dim is None else model.num_classes * capsule_dim,
            source="shipped" if item.shipped else source,
            checkpoints=[CheckpointFacts(step=step, id=f"{item.id}@{step}") for step, _ in steps],
            trained_on=None if learned is None else str(learned),
            test_error=error,
            digits=network.form.digits,
            white_on_black=network.form.white_on_black,
            presence=PRESENCE_THRESHOLD,
            multi=network.multi,
            examples=item.examples if fitting else None,
        )


def _embedded(run: Run) -> str | None:
    """The embedded part of what shipped weights learned from, so that they have pictures without a download."""
    choice = recipe_facts(run).data
    return str(replace(choice, source=SAMPLES[choice.source])) if choice and choice.source in SAMPLES else None


def _card_error(item: _Item) -> float | None:
    """The error that the card of shipped weights states, on the whole test split."""
    card = read_card(Path(item.run.model_folder)) if item.shipped else None
    return None if card is None else float(card["error_percent"]) / 100


def _key(run: Run) -> tuple[str, int]:
    """What tells one state of the weights from another."""
    weights = Path(run.model_folder) / "model.safetensors"
    try:
        return run.model_folder, weights.stat().st_mtime_ns
    except OSError:  # a hub name, or a checkpoint that was just removed
        return run.model_folder, 0
