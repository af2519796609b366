"""Several networks as one: their scores are added, as the paper does with seven networks on CIFAR-10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from torchcaps.errors import TorchcapsError
from torchcaps.eval.class_pairing import check_same_classes, known_classes
from torchcaps.eval.evaluate import EvaluationResult
from torchcaps.eval.examples import DEFAULT_PAIRS, Examples, choose_examples, fitting
from torchcaps.eval.recipe_facts import DataChoice, RecipeFacts, parse_data_name, recipe_facts
from torchcaps.eval.runs import Run
from torchcaps.models import Model

__all__ = ["Ensemble", "EnsembleOutput", "add_scores", "check_members", "common_examples"]


@dataclass
class EnsembleOutput:
    """What every member says, and what they say together.

    Shape:
        member_scores: ``[M, B, J]`` for M members. scores: ``[B, J]``, in [0, 1] as those of one network.
    """

    member_scores: Tensor

    @property
    def scores(self) -> Tensor:
        return self.member_scores.mean(dim=0)


class Ensemble(Model):
    r"""Networks that answer together, by the mean of their scores: capsule lengths, or a baseline's probabilities.

    .. math:: \mathrm{score}_j = \frac{1}{M} \sum_m \lVert v_j^{(m)} \rVert

    The mean names the same classes as the sum and stays in [0, 1]. It serves wherever a network is evaluated; it has no
    capsules and no decoder of its own. It is in evaluation mode, and so are its members, which alone are trained and
    saved.

    Shape:
        images: ``[B, C, H, W]``. Returns :class:`EnsembleOutput`.

    Example:
        >>> import torchcaps
        >>> networks = [torchcaps.create_model("small-cnn", channels=4, hidden=16) for _ in range(3)]
        >>> Ensemble(networks)(torch.rand(2, 1, 28, 28)).scores.shape
        torch.Size([2, 10])
    """

    def __init__(self, members: Sequence[Model]) -> None:
        super().__init__()
        check_members(members)
        self.image_shape, self.num_classes = members[0].image_shape, members[0].num_classes
        self.members = nn.ModuleList(members)
        self.eval()  # an evaluation leaves the mode as it was, also that of the members

    def forward(self, images: Tensor) -> EnsembleOutput:
        return EnsembleOutput(torch.stack([member(images).scores.float() for member in self.members]))

    def training_outputs(self, images: Tensor, classes: Tensor) -> NoReturn:
        raise TorchcapsError("an ensemble is not trained as one; train each of its members, with a seed of its own")

    def save_pretrained(self, save_directory: str | Path, **keywords: Any) -> NoReturn:
        raise TorchcapsError("an ensemble has no file of its own; save each of its members with save_pretrained")


def check_members(members: Sequence[Model], names: Sequence[str] = ()) -> None:
    """Raise unless there are members and all take the same pictures and tell the same number of classes apart."""
    if not members:
        raise TorchcapsError("an ensemble needs at least one network, got none")
    for place, member in enumerate(members):
        if not isinstance(member, Model):
            raise TypeError(f"an ensemble takes networks, got {member!r}; load it first with torchcaps.eval.load_model")
        if _fits(member) != _fits(members[0]):
            first, other = names[0] if names else "member 0", names[place] if names else f"member {place}"
            raise TorchcapsError(
                "networks that are measured together must take the same pictures and tell the same classes apart, but "
                f"{first} has {_fits(members[0])} and {other} has {_fits(member)}; leave one of them out"
            )


def _fits(model: Model) -> str:
    shape = "×".join(map(str, model.image_shape))
    return f"pictures of {shape} (channels×height×width) and {model.num_classes} classes"


def add_scores(results: Sequence[EvaluationResult]) -> EvaluationResult:
    """The result of an ensemble from those of its members on the same examples; it has no reconstructions.

    Example:
        >>> labels = torch.tensor([0])
        >>> sure, wrong = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.4, 0.6]])
        >>> add_scores([EvaluationResult(sure, labels), EvaluationResult(wrong, labels)]).error.count
        0
    """
    if not results:
        raise TorchcapsError("an ensemble needs at least one result, got none")
    labels = results[0].labels
    if any(not torch.equal(result.labels, labels) for result in results):
        raise TorchcapsError("the results of an ensemble must be of the same examples in the same order")
    return EvaluationResult(torch.stack([result.scores for result in results]).mean(dim=0), labels)


def common_examples(
    runs: Sequence[Run],
    networks: Sequence[Model],
    name: str | None = None,
    split_name: str = "test",
    data_dir: Path | None = None,
    pairs: int = DEFAULT_PAIRS,
) -> list[Examples]:
    """The same examples for each network of an ensemble, prepared (crop, standardisation) as its own recipe says.

    The arguments are those of :func:`torchcaps.eval.choose_examples`. Without a name the recipes must agree on data.
    """
    check_members(networks, [run.title for run in runs])
    _check_each_once(runs)
    check_same_classes(runs)
    facts = [recipe_facts(run) for run in runs]
    chosen = _agreed_data(facts, name)
    if split_name == "validation":
        _check_held_out(facts, chosen)
    # The one that knows most about the data reads it for all: how it was trained on it, else what its classes are.
    leader = max(
        range(len(runs)), key=lambda place: (facts[place].data == chosen, known_classes(runs[place]) is not None)
    )
    examples = choose_examples(runs[leader], networks[leader], name, split_name, data_dir, pairs)
    if examples.pairs is not None:
        return [examples] * len(runs)
    return [
        replace(examples, augment=fitting(fact.augment, examples.split.images, network))
        for fact, network in zip(facts, networks, strict=True)
    ]


def _check_each_once(runs: Sequence[Run]) -> None:
    seen: set[Path] = set()
    for run in runs:
        place = Path(run.model_folder).resolve()
        if place in seen:
            raise TorchcapsError(f"{run.title} is given twice; name each network once")
        seen.add(place)


def _agreed_data(facts: Sequence[RecipeFacts], name: str | None) -> DataChoice | None:
    """What to evaluate on: as named, else what the recipes say; nothing where there is no recipe."""
    if name is not None:
        return parse_data_name(name)
    known = {fact.data for fact in facts if fact.data is not None}
    if len(known) > 1:
        found = ", ".join(sorted(map(str, known)))
        raise TorchcapsError(f"the networks were trained on different data ({found}); say with --data what to evaluate")
    return next(iter(known), None)


def _check_held_out(facts: Sequence[RecipeFacts], chosen: DataChoice | None) -> None:
    """Raise where some networks were trained on what others held out."""
    known = [fact for fact in facts if fact.data is not None and fact.data == chosen]
    if len({(fact.validation or 0.0, fact.fold, fact.consecutive) for fact in known}) > 1:
        shares = sorted({fact.validation or 0.0 for fact in known})
        which = f"different shares of the training split ({', '.join(map(str, shares))})"
        raise TorchcapsError(
            f"the networks held out {which if len(shares) > 1 else 'different examples of the training split'}, so "
            "some were trained on what others held out; evaluate them one by one, or on --split test"
        )
