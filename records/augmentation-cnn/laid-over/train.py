"""Does it help on single digits if a second digit is laid over some of those that a small CNN learns from?

Trained on 50,000 digits of MNIST, measured on the 10,000 others that every search holds out; the test set is not read.
Both digits are to be named, each by a sigmoid of its own, so the CNN has sigmoids with and without second digits.
    python train.py --chance 0.5 --seed 0 --data-dir DIR
"""

import argparse
import math
import time

import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import torchcaps
from torchcaps import ops
from torchcaps.data import load, train_and_validation
from torchcaps.data.augment import build
from torchcaps.data.loader import Loader
from torchcaps.eval import evaluate

BATCH, EPOCHS, RATE, WARM_UP = 128, 8, 2e-3, 100

parser = argparse.ArgumentParser()
parser.add_argument("--chance", type=float, required=True, help="that a digit of another class is laid over")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--data-dir")
arguments = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(arguments.seed)
train, held_out = train_and_validation(load("mnist", data_dir=arguments.data_dir), 1 / 6, seed=0)
shift = build([{"name": "shift", "pixels": 2}])
firsts, seconds = (Loader(train, BATCH, augment=shift, seed=2 * arguments.seed + place) for place in range(2))
model = torchcaps.create_model("small-cnn", channels=12, hidden=128, multi_label=True)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.998), use_buffers=True)
optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
steps, start = EPOCHS * len(train) // BATCH, time.monotonic()
for step in range(steps):
    optimizer.param_groups[0]["lr"] = RATE * min(1, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / steps)) / 2
    for loader in (firsts, seconds):
        loader.prepare(step)
    first, second = (loader.step_batch(torch.tensor(step)) for loader in (firsts, seconds))
    laid_over = (torch.rand(BATCH) < arguments.chance) & (first.labels != second.labels)
    images = (first.images + second.images * laid_over[:, None, None, None]).clamp(max=1)
    truth = ops.multi_hot(first.labels, 10) + ops.multi_hot(second.labels, 10) * laid_over[:, None]
    loss = binary_cross_entropy_with_logits(model(images).logits, truth.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    if (step + 1) % 500 == 0:
        print(f"step {step + 1} of {steps}: loss {loss.item():.4f}, {time.monotonic() - start:.0f} s", flush=True)
print(f"chance {arguments.chance}, seed {arguments.seed}: {evaluate(average.module, held_out).error} held out")
