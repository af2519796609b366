"""Should a capsule draw the digit that was shown, or the digit before it was bent? The demo's network on a CPU.

python records/drawn-before-cpu/train.py FOLDER-OF-THE-DATA
"""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps import data
from torchcaps.data.loader import Loader
from torchcaps.data.window import to_unit_float
from torchcaps.eval import load_model
from torchcaps.train import fit

torch.set_num_threads(2)
mnist = data.load("mnist", data_dir=Path(sys.argv[1])).train
used = data.sample_digits("train").attributes["original_index"]
others = torch.ones(len(mnist), dtype=torch.bool)
others[used] = False
chosen = others.nonzero().squeeze(1)[::6][:9800]
images, labels = mnist.images[chosen].float() / 255, mnist.labels[chosen]

BENT = '[{name = "deform", degrees = 15, shear = 0.1, scale = [0.9, 1.1], translate = 2, pixels = 2.0, spacing = 7}]'


class Drawn(NamedTuple):
    images: Tensor
    labels: Tensor
    singles: Tensor  # what the decoder is to draw


as_shown = Loader.step_batch


def as_before(self: Loader, step: Tensor) -> Drawn:
    before, _ = self._store.gather(self.positions(step))
    batch = as_shown(self, step)
    return Drawn(batch.images, batch.labels, to_unit_float(before))


for seed in (0, 1, 2):
    for name, batches in {"as it was shown": as_shown, "as it was before": as_before}.items():
        Loader.step_batch = batches
        with tempfile.TemporaryDirectory() as folder:
            fit(
                "demo",
                [f"data.augment={BENT}", "log.tensorboard=off"],
                seed=seed,
                run_dir=f"{folder}/run",
                progress=False,
            )
            model = load_model(f"{folder}/run").eval()
        with torch.no_grad():
            found = torch.cat([model(part).scores.argmax(1) for part in images.split(700)])
        print(f"the digit {name}, seed {seed}: {int((found != labels).sum())} of {len(labels):,} wrong", flush=True)
