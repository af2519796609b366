"""Hold examples out of a set: stratified by class, whole groups together, the same choice on every machine.

The choice comes from the counter hash of :mod:`torchcaps.data.random`, integer arithmetic alone, so it does not change
with the version of any random generator.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data.random import GAMMA, hash_counter
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit, ValidationSplit
from torchcaps.errors import DataError

__all__ = ["held_out", "path_keys", "split_off_test", "train_and_validation", "validation_split"]

Indices = NDArray[np.int64]
Keys = NDArray[np.uint64]
MOST_CELLS = 2**25  # of a table of groups by classes


def validation_split(
    train: TrainSplit,
    fraction: float | None = None,
    *,
    count: int | None = None,
    seed: int = 0,
    fold: int = 0,
    consecutive: bool = False,
) -> tuple[TrainSplit, ValidationSplit]:
    """Divide a training set in one to train on and one to make choices by; a tenth is held out unless told.

    ``fold`` 1, 2, … hold as many others out, none of which an earlier fold had: for cross-validation.

    Classes keep their shares. Where the set has groups, a group stands on one side only, and the share of each class
    is then met as nearly as whole groups allow. Where nothing at all would be held out, each class gives its smallest
    group, so that more may be held out than was asked for.

    ``consecutive`` holds out examples that follow each other, as the set has them, whatever their classes. Where what
    belongs together stands together, as the digits of one writer do in MNIST, the two sides then share nothing but
    what lies at the seams.

    Example:
        >>> from torchcaps.data import sample_digits
        >>> train, validation = validation_split(sample_digits("train"), count=200)
        >>> len(train), len(validation), validation.class_counts(10)
        (800, 200, [20, 20, 20, 20, 20, 20, 20, 20, 20, 20])
    """
    if not isinstance(train, TrainSplit):
        raise DataError(f"a validation split is taken from a TrainSplit, not from a {type(train).__name__}")
    if fraction is not None and count is not None:
        raise DataError("give the validation split a fraction or a count, not both")
    if count is None:
        count = round(len(train) * _checked_fraction(0.1 if fraction is None else fraction))
    if consecutive:
        chosen = _consecutive(train, count, fold)
    else:
        chosen = held_out(train, count, _counter_keys(seed, len(train)), fold=fold)
    return train.select(_without(chosen, len(train)), TrainSplit), train.select(_tensor(chosen), ValidationSplit)


def train_and_validation(
    source: Source, fraction: float = 0.1, *, seed: int = 0, fold: int = 0, consecutive: bool = False
) -> tuple[TrainSplit, ValidationSplit]:
    """The publisher's validation set where there is one, else :func:`validation_split` of the training set."""
    if source.validation is None:
        return validation_split(source.train, fraction, seed=seed, fold=fold, consecutive=consecutive)
    if fold or consecutive:
        what = f"no fold {fold}" if fold else "no other one of consecutive examples"
        raise DataError(f"{source.name} has one validation set, that of its publisher, so there is {what}")
    return source.train, source.validation


def split_off_test(
    examples: Split, fraction: float, *, seed: int = 0, keys: Keys | None = None
) -> tuple[TrainSplit, TestSplit]:
    """Divide a set that was published without a test set; ``keys`` replace the positions as what decides.

    Each class that has two examples gives at least one, where there are no groups; so a set of small classes may give
    more than was asked for. A set that cannot be divided without a class to be tested and never learned is refused.
    """
    keys = _counter_keys(seed, len(examples)) if keys is None else keys
    one_class = examples.labels.ndim == 1
    chosen = held_out(examples, max(1, round(len(examples) * _checked_fraction(fraction))), keys, int(one_class))
    train = examples.select(_without(chosen, len(examples)), TrainSplit)
    test = examples.select(_tensor(chosen), TestSplit)
    if one_class and (lost := sorted(set(test.labels.tolist()) - set(train.labels.tolist()))):
        raise DataError(
            f"no example of class number {lost[0]} would be left to train on, for it has too few examples or groups; "
            "add some, or divide the set yourself"
        )
    return train, test


def path_keys(paths: list[str]) -> Keys:
    """Keys that belong to file names, so that a picture keeps its side when other pictures come or go."""
    digests = (hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()[:8] for path in paths)
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


def held_out(examples: Split, count: int, keys: Keys, least: int = 0, fold: int = 0) -> Indices:
    """Positions of about ``count`` examples, sorted: small keys first, class by class, group by group.

    Without groups a class gives ``least`` or more, if that leaves it one. A later ``fold`` takes what follows on those
    before.
    """
    _check_sizes(examples, count, fold)
    strata = _strata(examples)
    if examples.groups is None:
        chosen = _held_out_examples(strata, count, keys, least, fold)
    else:
        chosen = _held_out_groups(examples.labels.numpy(), strata, examples.groups.numpy(), count, keys, fold)
    return _something(chosen, examples, count, fold)


def _consecutive(examples: Split, count: int, fold: int) -> Indices:
    _check_sizes(examples, count, fold)
    if examples.groups is not None:
        raise DataError("the set has groups, which say what belongs together; leave consecutive out")
    first = fold * count
    chosen = _something(np.arange(first, min(first + count, len(examples)), dtype=np.int64), examples, count, fold)
    labels = examples.labels.numpy()
    if labels.ndim == 1 and (lost := sorted(set(labels[chosen]) - set(np.delete(labels, chosen)))):
        raise DataError(
            f"consecutive examples would take all of class number {lost[0]}: the set is sorted by class; leave "
            "consecutive out"
        )
    return chosen


def _check_sizes(examples: Split, count: int, fold: int) -> None:
    if fold < 0:
        raise DataError(f"a fold is 0 or a whole number above it, got {fold}")
    if not 0 < count < len(examples):
        raise DataError(f"cannot hold {count} of {len(examples)} examples out; both sides need at least one")


def _something(chosen: Indices, examples: Split, count: int, fold: int) -> Indices:
    if not len(chosen):
        raise DataError(
            f"of {len(examples)} examples nothing is left for fold {fold} after {count} or so in each before"
        )
    return chosen


def _held_out_examples(strata: Indices, count: int, keys: Keys, least: int, fold: int) -> Indices:
    sizes = np.bincount(strata)
    order = np.lexsort((keys, strata))  # by stratum, then by key
    ends = np.cumsum(sizes)
    firsts = lasts = ends - sizes
    for _ in range(fold + 1):  # shares of what is left, so that rounding leaves no example to no fold
        firsts, left = lasts, ends - lasts
        if not left.any():
            break
        shares = _proportional_shares(left, min(count, int(left.sum())))
        lasts = firsts + np.maximum(shares, np.minimum(least, left - 1))
    chosen = [order[first:last] for first, last in zip(firsts, lasts, strict=True)]
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def _held_out_groups(
    labels: NDArray[Any], strata: Indices, groups: Indices, count: int, keys: Keys, fold: int
) -> Indices:
    """Take whole groups, in the order of their smallest key, until each stratum has its share; fold after fold."""
    names, group_of = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise DataError("all examples belong to one group, so no example can be held out; at least two are needed")
    columns = max(int(strata.max()) + 1, labels.shape[-1] if labels.ndim == 2 else 0)
    if len(names) * columns > MOST_CELLS:
        raise DataError(
            f"{len(names):,} groups of {columns:,} classes are too many to divide; {MOST_CELLS:,} of groups times "
            "classes are allowed, so divide the set yourself"
        )
    group_size = np.bincount(group_of)
    group_key = np.full(len(names), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(group_key, group_of, keys)
    table = np.zeros((len(names), int(strata.max()) + 1), dtype=np.int64)
    np.add.at(table, (group_of, strata), 1)
    group_stratum = table.argmax(axis=1)  # a group counts for the class it shows most
    shown = table  # how often each group shows each class
    if labels.ndim == 2:
        shown = np.zeros((len(names), labels.shape[1]), dtype=np.int64)
        np.add.at(shown, group_of, labels)

    sizes = np.bincount(group_stratum, weights=group_size, minlength=table.shape[1]).astype(np.int64)
    wanted = _proportional_shares(sizes, count)
    left = np.ones(len(names), dtype=bool)  # of the folds before
    for _ in range(fold + 1):
        taken, kept = np.zeros_like(wanted), shown.sum(axis=0)
        chosen = np.zeros(len(names), dtype=bool)
        if not left.any():
            break
        for group in np.argsort(group_key, kind="stable"):
            stratum, size = group_stratum[group], group_size[group]
            missing = wanted[stratum] - taken[stratum]
            nearer = left[group] and size < 2 * missing  # taking it brings the stratum nearer to its share
            if nearer and (kept > shown[group])[shown[group] > 0].all():  # and leaves some of each class to train on
                chosen[group] = True
                taken[stratum] += size
                kept = kept - shown[group]
        if not chosen.any():  # every group is large: the smallest of each class that keeps another one
            smallest = np.lexsort((group_key, group_size))
            smallest = smallest[left[smallest]]
            firsts = smallest[np.unique(group_stratum[smallest], return_index=True)[1]]
            keeps_another = np.bincount(group_stratum)[group_stratum] > 1
            chosen[firsts[keeps_another[firsts]] if keeps_another[firsts].any() else smallest[:1]] = True
        left &= ~chosen
    if chosen.all():
        raise DataError(f"holding {count} examples out would take every group; hold fewer out")
    return np.flatnonzero(chosen[group_of]).astype(np.int64)


def _strata(examples: Split) -> Indices:
    """Class of each example; with several classes an example, its set of classes."""
    labels = examples.labels.numpy()
    if labels.ndim == 1:
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)
    _, stratum, sizes = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
    stratum = stratum.reshape(-1)
    rare = sizes[stratum] < 2  # sets of classes that occur once form one stratum together
    return np.unique(np.where(rare, len(sizes), stratum), return_inverse=True)[1].astype(np.int64)


def _proportional_shares(sizes: Indices, count: int) -> Indices:
    """Divide ``count`` over strata in proportion to their sizes, by largest remainder, exactly."""
    exact = sizes * (count / sizes.sum())
    shares = np.floor(exact + 1e-9).astype(np.int64)
    would_empty = shares + 1 >= sizes  # a class should not lose its last training example
    remainder_order = np.lexsort((shares - exact, would_empty))
    shares[remainder_order[: count - shares.sum()]] += 1
    return shares


def _counter_keys(seed: int, count: int) -> Keys:
    """64 random bits for each position: uint64 ``[count]``. The seed moves the counter by 2³² places each."""
    bits = hash_counter(torch.arange(1, count + 1), key=(seed % 2**32 << 32) * GAMMA)
    return bits.squeeze(-1).numpy().view(np.uint64)


def _checked_fraction(fraction: float) -> float:
    if not 0 < fraction < 1:
        raise DataError(f"the fraction to hold out must lie between 0 and 1, got {fraction}")
    return fraction


def _without(chosen: Indices, count: int) -> torch.Tensor:
    keep = np.ones(count, dtype=bool)
    keep[chosen] = False
    return torch.from_numpy(np.flatnonzero(keep))


def _tensor(indices: Indices) -> torch.Tensor:
    return torch.from_numpy(indices)
