"""What two soft readings do to digits, and which ones a network that knows no others gets wrong.

python records/writers/draw.py FOLDER-OF-THE-DATA docs/images/soft.png
"""

import json
import sys
from pathlib import Path

import matplotlib
import torch

from torchcaps import data
from torchcaps.data.augment import build

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RECORDS = Path(__file__).parent
COLUMNS = 14
AFFINE = {"degrees": 20, "shear": 0.2, "scale": (0.85, 1.15), "translate": 2}
STRONG = [{"name": "affine", **AFFINE}, {"name": "elastic", "pixels": 3.0, "spacing": 7}]
DEFORM = [{"name": "deform", **AFFINE, "pixels": 3.0, "spacing": 7}]
FOLD = 1


def wrong(cell):
    return set(map(int, json.loads((RECORDS / cell / f"seed{FOLD}" / "result.json").read_text())["wrong"].split()))


mnist = data.load("mnist", data_dir=Path(sys.argv[1]))
held_out = data.train_and_validation(mnist, 1 / 6, fold=FOLD, consecutive=True)[1]
only_soft = sorted(wrong("stem-strong") - wrong("stem-deform-more"))


def grey(images):
    """Share of the ink that is neither dark nor bright."""
    return int(((images > 25) & (images < 230)).sum()) / int((images > 25).sum())


embedded = data.sample_digits("train").images
print(f"grey share of the ink: {grey(embedded):.2f} as they are, ", end="")
for name, chain in (("affine, then elastic", STRONG), ("deform", DEFORM)):
    print(f"{grey(build(chain)(embedded, torch.arange(len(embedded)), 0)):.2f} {name}", end="; ")
print(f"{len(only_soft)} digits are wrong after two soft steps and right after one sharp step; the first are drawn")
digits = data.sample_digits("train").images[:COLUMNS]
counter = torch.arange(COLUMNS)
rows = [
    ("as they are", digits),
    ("affine, then elastic", build(STRONG)(digits, counter, 0)),
    ("deform: one step, sharp", build(DEFORM)(digits, counter, 0)),
    ("wrong when trained on\nthe second row, right\nwhen trained on the third", held_out.images[only_soft[:COLUMNS]]),
    ("", held_out.images[only_soft[COLUMNS : 2 * COLUMNS]]),
]
figure, axes = plt.subplots(len(rows), COLUMNS, figsize=(12.5, 4.35), dpi=110)
for (title, pictures), line in zip(rows, axes, strict=True):
    for axis in line:
        axis.axis("off")
    for picture, axis in zip(pictures, line, strict=False):
        axis.imshow(picture[0], cmap="gray", vmin=0, vmax=255)
    line[0].text(-6, 14, title, ha="right", va="center", fontsize=9)
figure.subplots_adjust(left=0.165, right=0.995, top=0.99, bottom=0.01, wspace=0.06, hspace=0.08)
figure.savefig(sys.argv[2])
