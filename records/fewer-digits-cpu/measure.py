"""What would more digits be worth, and what more writers? A small CNN on a CPU, by how much of MNIST it learns from.

python records/fewer-digits-cpu/measure.py FOLDER-OF-THE-DATA
"""

import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

import torchcaps
from torchcaps import data

torch.set_num_threads(2)
digits = data.load("mnist", data_dir=Path(sys.argv[1])).train
STEPS, BATCH, RATE = 2000, 128, 2e-3


def fit(kept, seed):
    """A small CNN on these digits, shifts of up to 2 pixels; as many steps for few digits as for many."""
    torch.manual_seed(seed)
    model = torchcaps.create_model("small-cnn", channels=12)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    random = torch.Generator().manual_seed(seed)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        which = kept[torch.randint(len(kept), (BATCH,), generator=random)]
        padded = F.pad(digits.images[which].float() / 255, (2, 2, 2, 2))
        top, left = torch.randint(5, (2,), generator=random).tolist()  # the whole batch alike
        loss = F.cross_entropy(model(padded[:, :, top : top + 28, left : left + 28]).logits, digits.labels[which])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def errors(model, which):
    found = [model(digits.images[part].float() / 255).logits.argmax(1) for part in which.split(1000)]
    return int((torch.cat(found) != digits.labels[which]).sum())


everything = torch.arange(60_000)
for fold in range(3):
    held_out = everything[fold * 10_000 : (fold + 1) * 10_000]
    rest = everything[~torch.isin(everything, held_out)]
    print(f"all 50,000, fold {fold}: {errors(fit(rest, fold), held_out)} of 10,000", flush=True)
    for count in (25_000, 12_500, 6_250):
        # Digits that follow each other are a writer's: a piece of the set has few writers, every k-th digit has all.
        start = 50_000 * fold // 3
        piece = rest[(start + torch.arange(count)) % 50_000]
        some = rest[torch.randperm(50_000, generator=torch.Generator().manual_seed(fold))[:count]]
        for title, kept in (("fewer writers", piece), ("fewer digits of each", some)):
            print(f"{count:,}, {title}, fold {fold}: {errors(fit(kept, fold), held_out)} of 10,000", flush=True)
