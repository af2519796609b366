"""Measure a finished model and show what it does: metrics, intervals, figures, the report."""

from torchcaps.eval.couplings import LayerCoupling, measure_couplings, routing_traces
from torchcaps.eval.drawings import coupling_entropy, dimension_grid, draw
from torchcaps.eval.ensemble import Ensemble, EnsembleOutput, add_scores, common_examples
from torchcaps.eval.evaluate import EvaluationResult, evaluate, evaluate_pairs, spread_pairs
from torchcaps.eval.examples import Examples, choose_examples
from torchcaps.eval.intervals import Proportion, SeedSummary, difference_of_means, summarize_seeds, wilson_interval
from torchcaps.eval.metrics import (
    Calibration,
    calibration,
    confusion_matrix,
    exact_match_error,
    label_error,
    predicted_classes,
    reconstruction_errors,
)
from torchcaps.eval.robustness import SWEEPS, Sweep, sweep_errors
from torchcaps.eval.runs import Run, load_model, open_run

__all__ = [
    "SWEEPS",
    "Calibration",
    "Ensemble",
    "EnsembleOutput",
    "EvaluationResult",
    "Examples",
    "LayerCoupling",
    "Proportion",
    "Run",
    "SeedSummary",
    "Sweep",
    "add_scores",
    "calibration",
    "choose_examples",
    "common_examples",
    "confusion_matrix",
    "coupling_entropy",
    "difference_of_means",
    "dimension_grid",
    "draw",
    "evaluate",
    "evaluate_pairs",
    "exact_match_error",
    "label_error",
    "load_model",
    "measure_couplings",
    "open_run",
    "predicted_classes",
    "reconstruction_errors",
    "routing_traces",
    "spread_pairs",
    "summarize_seeds",
    "sweep_errors",
    "wilson_interval",
]
