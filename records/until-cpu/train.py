"""Digits as they are at the end of training: does it help to let strong augmentation rest? The demo's network on a CPU.

python records/until-cpu/train.py FOLDER-OF-THE-DATA
"""

import sys
import tempfile
from pathlib import Path

import torch

from torchcaps import data
from torchcaps.eval import load_model
from torchcaps.train import fit

torch.set_num_threads(2)
mnist = data.load("mnist", data_dir=Path(sys.argv[1])).train
used = data.sample_digits("train").attributes["original_index"]
others = torch.ones(len(mnist), dtype=torch.bool)
others[used] = False
chosen = others.nonzero().squeeze(1)[::6][:9800]
images, labels = mnist.images[chosen].float() / 255, mnist.labels[chosen]

SHIFT = '{name = "shift", pixels = 2}'
GENTLE = 'name = "deform", degrees = 15, shear = 0.1, scale = [0.9, 1.1], translate = 0, pixels = 2.0'
STRONG = 'name = "deform", degrees = 20, shear = 0.2, scale = [0.85, 1.15], translate = 0, pixels = 3.0'
AUGMENTATIONS = {
    "deform 15°, 2": f"[{SHIFT}, {{{GENTLE}}}]",
    "deform 15°, 2, until 0.8": f"[{SHIFT}, {{{GENTLE}, until = 0.8}}]",
    "deform 20°, 3": f"[{SHIFT}, {{{STRONG}}}]",
    "deform 20°, 3, until 0.8": f"[{SHIFT}, {{{STRONG}, until = 0.8}}]",
}
for seed in (0, 1, 2):
    for name, augment in AUGMENTATIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            fit(
                "demo",
                [f"data.augment={augment}", "log.tensorboard=off"],
                seed=seed,
                run_dir=f"{folder}/run",
                progress=False,
            )
            model = load_model(f"{folder}/run").eval()
        with torch.no_grad():
            found = torch.cat([model(part).scores.argmax(1) for part in images.split(700)])
        print(f"{name}, seed {seed}: {int((found != labels).sum())} of {len(labels):,} wrong", flush=True)
