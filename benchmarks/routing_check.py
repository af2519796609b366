"""Errors of the fused routing next to those of plain PyTorch in the same precision, both against float64.

    PYTHONPATH=src python -m benchmarks.routing_check --csv errors.csv          # the whole grid, on a GPU

Fresh random inputs for every case; all memory that ``torch.empty`` hands out is filled with NaN beforehand, so that
an element nobody wrote cannot pass.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu_timing import append_rows, device_line
from torchcaps import ops

__all__ = ["Case", "failures", "grid", "run_case", "run_grid"]

MOST = 2.0  # times the error of plain PyTorch
DRAWS, DRAWS_AGAIN = 3, 30

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32}


@dataclass(frozen=True)
class Case:
    """One problem; ``precision`` names the dtype, and tf32 the float32 with tf32 products."""

    I: int
    J: int
    D: int
    P: int
    R: int
    B: int = 33
    precision: str = "bf16"
    shared: bool = False
    leaky: bool = False
    bias: bool = True
    gradient: str = "all"
    centre: str = "sum"
    sharpness: float = 1.0


def grid() -> Iterator[Case]:
    """Every combination of the odd sizes, then every switch at one of them."""
    sizes = itertools.product((1, 63, 500, 1152, 3200), (1, 10, 37), (4, 16, 24), (6, 8, 32), (1, 3, 5))
    for I, J, D, P, R in sizes:
        yield from (Case(I, J, D, P, R, precision=precision) for precision in ("bf16", "tf32", "fp32"))
    for precision in PRECISIONS:
        for shared, leaky, bias, gradient in itertools.product(
            (False, True), (False, True), (False, True), ("all", "last")
        ):
            yield Case(500, 10, 16, 8, 3, 65, precision, shared, leaky, bias, gradient)
        for centre, sharpness in (("capsule", 1.0), ("direction", 1.0), ("direction", 10.0)):
            for R in (2, 3, 5):
                yield Case(500, 10, 16, 8, R, 65, precision, centre=centre, sharpness=sharpness)
        for I, J, D in ((500, 10, 16), (63, 37, 24)):
            yield Case(I, J, D, 8, 2, 65, precision, bias=False, centre="total")
        for B in (1, 17, 128, 300):
            yield Case(1152, 10, 16, 8, 3, B, precision)
        yield Case(70, 256, 64, 64, 2, 20, precision)
        yield Case(40, 100, 16, 16, 10, 5, precision)


def run_case(case: Case, device: torch.device, seeds: Iterable[int]) -> list[tuple[str, float, float]]:
    """Name of the tensor, error of the fused kernels, error of plain PyTorch; both relative, in the 2-norm.

    Over several draws, since the error of a bias of four numbers is mostly luck.
    """
    draws = [_results(case, device, seed) for seed in seeds]
    rows = []
    for place, name in enumerate(("capsules", "grad u", "grad weight", "grad bias")[: len(draws[0]["exact"])]):
        exact = torch.stack([draw["exact"][place] for draw in draws])
        errors = {
            kind: float((torch.stack([draw[kind][place].double() for draw in draws]) - exact).norm() / exact.norm())
            for kind in draws[0]
        }
        rows.append((name, errors["fused"], max(errors["plain"], errors.get("plain, rounded", 0.0))))
    return rows


def _results(case: Case, device: torch.device, seed: int) -> dict[str, list[Tensor]]:
    """Capsules and every gradient for one draw, by each formulation."""
    dtype = PRECISIONS[case.precision]
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device, generator=generator)

    # Votes of length 1.5: logits of a few units, so that the coefficients differ but the routing is not chaotic.
    std = 1.5 / (case.D * case.P) ** 0.5
    shape = (case.J, case.D, case.P) if case.shared else (case.I, case.J, case.D, case.P)
    inputs = [normal(case.B, case.I, case.P), std * normal(*shape)]
    if case.bias:
        inputs.append(0.3 * normal(case.J, case.D))
    inputs = [x.to(dtype) for x in inputs]
    grad = normal(case.B, case.J, case.D).to(dtype)

    def results(inputs: list[Tensor], wide: torch.dtype, backend: str) -> list[Tensor]:
        leaves = [x.detach().to(wide).requires_grad_() for x in inputs]
        bias = leaves[2] if case.bias else None
        how = {"gradient": case.gradient, "centre": case.centre, "sharpness": case.sharpness}
        capsules = ops.capsule_linear(leaves[0], leaves[1], case.R, bias, case.leaky, backend, **how)
        return [capsules.detach(), *torch.autograd.grad(capsules, leaves, grad.to(wide))]

    found = {"exact": results(inputs, torch.float64, "eager")}
    torch.set_float32_matmul_precision("high" if case.precision == "tf32" else "highest")
    with poisoned_memory():
        found["fused"] = results(inputs, dtype, "triton")
    found["plain"] = results(inputs, dtype, "eager")
    if case.precision == "tf32":
        # cuBLAS takes tf32 only for the shapes it likes; this is the least that tf32 costs in every shape.
        found["plain, rounded"] = results([round_to_tf32(x) for x in inputs], dtype, "eager")
    torch.set_float32_matmul_precision("highest")
    return found


def round_to_tf32(x: Tensor) -> Tensor:
    """The nearest number with 10 bits behind the point."""
    bits = x.view(torch.int32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


class poisoned_memory:  # noqa: N801  (reads as a word at the call)
    """Inside, ``torch.empty`` and its kin hand out NaN."""

    def __enter__(self) -> None:
        self.before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True

    def __exit__(self, *_: object) -> None:
        torch.use_deterministic_algorithms(self.before[0])
        torch.utils.deterministic.fill_uninitialized_memory = self.before[1]


def allowed(plain: float, dtype: torch.dtype) -> float:
    """Twice the error of plain PyTorch, but not less than twice one unit in the last place of a float32 sum, or than
    twice the rounding of the result.
    """
    return MOST * max(plain, torch.finfo(torch.float32).eps, torch.finfo(dtype).eps / 4)


def rows_of(numbered: tuple[int, Case]) -> list[dict[str, object]]:
    """One row a tensor of a case, whose number gives the seeds.

    Of five thousand comparisons of three draws each a few exceed any limit by luck: where one does, the case is drawn
    anew ten times as often, and those rows follow.
    """
    number, case = numbered
    rows = _compare(case, range(DRAWS * number, DRAWS * (number + 1)))
    if not all(row["ok"] for row in rows):
        first = 1_000_000 + DRAWS_AGAIN * number
        rows += _compare(case, range(first, first + DRAWS_AGAIN))
    torch.cuda.empty_cache()  # the other processes need the memory too
    return rows


def _compare(case: Case, seeds: range) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, fused, plain in run_case(case, torch.device("cuda"), seeds):
        ok = fused <= allowed(plain, PRECISIONS[case.precision])  # false for NaN
        rows.append({**asdict(case), "tensor": name, "draws": len(seeds), "fused": fused, "plain": plain, "ok": ok})
    return rows


def failures(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """What was beyond the limit in the second draws, too."""
    return [row for row in rows if row["draws"] == DRAWS_AGAIN and not row["ok"]]


def run_grid(cases: list[Case], processes: int, seconds: float = math.inf) -> list[dict[str, object]]:
    """All rows, or those that are ready in time; most of it goes into compiling, which several processes share."""
    end = time.monotonic() + seconds
    rows: list[dict[str, object]] = []
    numbered = list(enumerate(cases))
    random.Random(0).shuffle(numbered)  # the large ones follow each other, and together do not fit into memory
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        results = pool.imap_unordered(rows_of, numbered)
        for _ in cases:
            try:
                rows += results.next(None if seconds == math.inf else max(0.01, end - time.monotonic()))
            except multiprocessing.TimeoutError:
                break
        pool.terminate()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th case only")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=math.inf, help="report what is ready by then")
    options = parser.parse_args()
    cases = [case for case in grid() if case.precision in options.precisions][:: options.every]
    rows = run_grid(cases, options.processes, options.seconds)
    if options.csv:
        append_rows(options.csv, [{**row, **device_line()} for row in rows])
    first, again = ([row for row in rows if row["draws"] == draws] for draws in (DRAWS, DRAWS_AGAIN))
    for row in [row for row in first if not row["ok"]][:40] + again[:80]:
        print(" ".join(f"{k} {v:.2e}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
    for precision in PRECISIONS:
        for name in ("capsules", "grad u", "grad weight", "grad bias"):
            chosen = [row for row in first if row["precision"] == precision and row["tensor"] == name]
            if chosen:
                ratio = max(float(row["fused"]) / max(float(row["plain"]), 1e-12) for row in chosen)  # type: ignore[arg-type]
                middle = sorted(float(row["fused"]) for row in chosen)[len(chosen) // 2]  # type: ignore[arg-type]
                print(
                    f"{precision:5} {name:12} median error {middle:.2e}, worst ratio {ratio:.2f}, {len(chosen)} cases"
                )
    done = sum(row["tensor"] == "capsules" for row in first)
    beyond, still = sum(not row["ok"] for row in first), len(failures(rows))
    print(
        f"{done} of {len(cases)} cases, {beyond} of {len(first)} tensors beyond {MOST:g} times plain PyTorch in "
        f"{DRAWS} draws; {still} in {DRAWS_AGAIN} other draws of the same cases"
    )
    if still:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
