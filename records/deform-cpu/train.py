"""Few digits to learn from: affine maps and pulls in one step and sharply, or as before? The demo's network on a CPU.

python records/deform-cpu/train.py FOLDER-OF-THE-DATA
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

AFFINE = "degrees = 15, shear = 0.1, scale = [0.9, 1.1], translate = 2"
AUGMENTATIONS = {
    "affine": f'[{{name = "affine", {AFFINE}}}]',
    "affine, then elastic": f'[{{name = "affine", {AFFINE}}}, {{name = "elastic", pixels = 2.0, spacing = 7}}]',
    "deform without pulls": f'[{{name = "deform", {AFFINE}, pixels = 0.0}}]',
    "deform": f'[{{name = "deform", {AFFINE}, pixels = 2.0}}]',
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
