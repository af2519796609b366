"""Does a small CapsNet learn from networks of other kinds what its own kind does not know? Held-out digits, on a CPU.

python records/distillation-cpu/train.py FOLDER-OF-THE-DATA
"""

import math
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import torchcaps
from torchcaps import data, ops

EXAMPLES, STEPS, BATCH, RATE = 10_000, 1500, 128, 2e-3

torch.set_num_threads(2)
train, held_out = data.train_and_validation(data.load("mnist", data_dir=Path(sys.argv[1])), 1 / 6, seed=0)
chosen = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))[:EXAMPLES]
images, labels = train.images[chosen], train.labels[chosen]
held_out_images = held_out.images.float() / 255

SHAPE = {"image_shape": (1, 28, 28), "num_classes": 10}
SMALL = {"primary_types": 8, "decoder": "none"}
KINDS = {
    "stem": ("capsnet", {"stem": [8, 8, 16, 16], "primary_kernel": 5, **SMALL}),
    "caps": ("capsnet", {"conv_channels": 32, **SMALL}),
    "cnn": ("small-cnn", {"channels": 8}),
}


def batch(step, seed):
    """Digits with replacement, each shifted by up to 2 pixels."""
    random = torch.Generator().manual_seed(seed * 1_000_003 + step)
    which = torch.randint(EXAMPLES, (BATCH,), generator=random)
    padded = F.pad(images[which].float() / 255, (2, 2, 2, 2))
    rows, columns = (torch.randint(5, (BATCH,), generator=random)[:, None] + torch.arange(28) for _ in range(2))
    shifted = padded[torch.arange(BATCH)[:, None, None], 0, rows[:, :, None], columns[:, None, :]]
    return shifted[:, None], labels[which]


def presence(model, pictures):
    """Class lengths; of a CNN its probabilities, brought to the margins 0.1 and 0.9."""
    out = model(pictures)
    return out.lengths if hasattr(out, "lengths") else 0.1 + 0.8 * out.logits.softmax(1)


@torch.no_grad()
def held_out_presence(model):
    return torch.cat([presence(model.eval(), part) for part in held_out_images.split(1000)])


def fit(kind, seed, teachers=(), share=0.0, title="alone"):
    """Margin loss, and to ``share`` the squared distance of the lengths to the teachers' mean."""
    torch.manual_seed(seed)
    name, settings = KINDS[kind]
    model = torchcaps.create_model(name, **SHAPE, **settings)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.995), use_buffers=True)
    start = time.time()
    for step in range(STEPS):
        rate = RATE * min(1, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        for group in optimizer.param_groups:
            group["lr"] = rate
        pictures, truth = batch(step, seed)
        out = model.train()(pictures)
        capsules = hasattr(out, "lengths")
        loss = ops.margin_loss(out.lengths, truth) if capsules else F.cross_entropy(out.logits, truth)
        if teachers:
            with torch.no_grad():
                goal = torch.stack([presence(teacher, pictures) for teacher in teachers]).mean(0)
            loss = (1 - share) * loss + share * (out.lengths - goal).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
    found = average.module.eval()
    wrong = int((held_out_presence(found).argmax(1) != held_out.labels).sum())
    print(f"{kind}, seed {seed}, {title}, share {share}: {wrong} of 10,000, {time.time() - start:.0f} s", flush=True)
    return found


networks = {(kind, seed): fit(kind, seed) for kind in ("stem", "cnn", "caps") for seed in (0, 1)}
lengths = {name: held_out_presence(network) for name, network in networks.items()}
TOGETHER = {
    "two stems": [("stem", 0), ("stem", 1)],
    "stem and cnn": [("stem", 0), ("cnn", 0)],
    "stem and caps": [("stem", 0), ("caps", 0)],
    "three kinds": [("stem", 0), ("cnn", 0), ("caps", 0)],
    "all six": list(networks),
}
for title, members in TOGETHER.items():
    wrong = int((sum(lengths[name] for name in members).argmax(1) != held_out.labels).sum())
    print(f"{title} together: {wrong} of 10,000", flush=True)
for seed in (2, 3):
    fit("stem", seed)
    for title, share in (("three kinds", 0.5), ("two stems", 0.5), ("three kinds", 1.0)):
        fit("stem", seed, [networks[name] for name in TOGETHER[title]], share, f"taught by {title}")
