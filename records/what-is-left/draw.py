"""Which held-out digits do nine networks of three kinds agree to get wrong? From the records, and a picture of them.

python records/what-is-left/draw.py FOLDER-OF-THE-DATA
"""

import sys
from collections import Counter
from pathlib import Path

import torch

from torchcaps.eval.figures import captioned_pictures, to_png
from torchcaps.train.feed import load_source
from torchcaps.train.studies import get_study
from torchcaps.train.studies.measure import measured_split
from torchcaps.train.studies.results import StudyResult

HERE = Path(__file__).parent
ROWS = (
    *(f"writers/{cell}" for cell in ("shift", "shift-text", "stem-elastic", "stem-deform", "stem-deform-some")),
    *("writers/growing-deform", "what-is-left/ink", "what-is-left/cross-entropy", "what-is-left/cnn-turned"),
)
study = get_study("writers")
pictures, labels = [], []
for sixth in range(3):
    runs = [StudyResult.read(HERE.parent / row / f"seed{sixth}" / "result.json") for row in ROWS]
    times = Counter(place for run in runs for place in run.wrong)
    most = sum(2 * count > len(runs) for count in times.values())
    always = sorted(place for place, count in times.items() if count == len(runs))
    print(f"sixth {sixth}: fewest {min(run.errors for run in runs)}, most {most}, all {len(always)}")
    recipe = study.recipe(study.choose(["shift"])[0], sixth)
    held_out = measured_split(recipe, load_source(recipe, Path(sys.argv[1])), "validation")
    pictures.append(held_out.images[always].float() / 255)
    labels += [str(int(label)) for label in held_out.labels[always]]
(HERE / "always-wrong.png").write_bytes(to_png(captioned_pictures(torch.cat(pictures), labels, 11)))
