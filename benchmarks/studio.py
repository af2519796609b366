"""The studio under load and under attack.

    python -m benchmarks.studio --clients 50 --seconds 60 [MODEL | --paper]
    python -m benchmarks.studio --faults 10000 [MODEL]

``--paper`` takes a network of the paper's size with fresh weights, which costs as much as a trained one. Without a
model the studio's own demo network is used.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import urllib.request
from pathlib import Path

import torch

import torchcaps
from benchmarks.studio_faults import run_faults
from benchmarks.studio_load import measure_load
from benchmarks.studio_process import running_studio
from torchcaps.data import sample_digits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="a run folder or model folder of pictures of 28×28")
    parser.add_argument("--paper", action="store_true", help="a network of the paper's size")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--faults", type=int, default=0, help="send so many malformed requests instead")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.paper:
            model = str(Path(scratch) / "paper-size")
            torchcaps.create_model("capsnet").save_pretrained(model)
        else:
            model = arguments.model or "capsnet-mnist"
        print(f"torch {torch.__version__}, Python {platform.python_version()}, {torch.get_num_threads()} threads")
        if arguments.faults:
            return run_faults(model, arguments.faults)
        with running_studio([model], "--no-compare") as studio:
            with urllib.request.urlopen(f"{studio.address}api/models") as answer:
                model_id = json.load(answer)[0]["id"]
            images = sample_digits("test").images[:100]
            result = measure_load(
                studio.process_id, studio.port, model_id, images, arguments.clients, arguments.seconds
            )
    print(result)
    return 0 if result.errors == 0 and result.p99 < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
