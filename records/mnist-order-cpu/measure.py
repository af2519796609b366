"""Do digits of one writer stand together in MNIST, and what does it change to hold out other writers? On a CPU.

python records/mnist-order-cpu/measure.py FOLDER-OF-THE-DATA
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import torchcaps
from torchcaps import data

torch.set_num_threads(2)
mnist = data.load("mnist", data_dir=Path(sys.argv[1]))
DISTANCES = (1, 2, 3, 4, 10, 20, 50, 100, 200, 500, 2000)


def standardised(values, labels):
    """Mean 0 and deviation 1 within each class, so that only the hand is left."""
    for digit in range(10):
        chosen = labels == digit
        values[chosen] = (values[chosen] - values[chosen].mean()) / values[chosen].std()
    return values


def slant_and_thickness(pictures):
    rows, columns = np.mgrid[:28, :28]
    ink = pictures.sum((1, 2))
    down = rows - ((pictures * rows).sum((1, 2)) / ink)[:, None, None]
    right = columns - ((pictures * columns).sum((1, 2)) / ink)[:, None, None]
    slant = (pictures * down * right).sum((1, 2)) / (pictures * down**2).sum((1, 2))
    edges = sum(np.abs(np.diff(pictures, axis=axis)).sum((1, 2)) for axis in (1, 2))
    return slant, ink / edges


for split in ("train", "test"):
    digits = getattr(mnist, split)
    labels, pictures = digits.labels.numpy(), digits.images[:, 0].numpy().astype("f4") / 255
    for name, values in zip(("slant", "thickness"), slant_and_thickness(pictures), strict=True):
        hand = standardised(values, labels)
        alike = ", ".join(f"{np.mean(hand[:-step] * hand[step:]):+.2f}" for step in DISTANCES)
        print(f"{split}: correlation of the {name} of digits {DISTANCES} places apart: {alike}", flush=True)

STEPS, BATCH, RATE = 2000, 128, 2e-3


def fit(kept, seed):
    """A small CNN on these training digits, shifts of up to 2 pixels."""
    torch.manual_seed(seed)
    model = torchcaps.create_model("small-cnn", channels=12)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    random = torch.Generator().manual_seed(seed)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        which = kept[torch.randint(len(kept), (BATCH,), generator=random)]
        padded = F.pad(mnist.train.images[which].float() / 255, (2, 2, 2, 2))
        top, left = torch.randint(5, (2,), generator=random).tolist()  # the whole batch alike
        loss = F.cross_entropy(model(padded[:, :, top : top + 28, left : left + 28]).logits, mnist.train.labels[which])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def errors(model, digits, which):
    found = [model(digits.images[part].float() / 255).logits.argmax(1) for part in which.split(1000)]
    return int((torch.cat(found) != digits.labels[which]).sum())


everything = torch.arange(60_000)
shuffled = torch.randperm(60_000, generator=torch.Generator().manual_seed(0))
for title, order in (("any digits", shuffled), ("digits that follow each other", everything)):
    for fold in range(3):
        held_out = order[fold * 10_000 : (fold + 1) * 10_000]
        kept = order[~torch.isin(order, held_out)]
        print(f"held out: {title}, fold {fold}: {errors(fit(kept, fold), mnist.train, held_out)} of 10,000", flush=True)
