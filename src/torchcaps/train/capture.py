"""The whole step as one CUDA graph, compiled where that helps; plain PyTorch where either is out of reach."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import torch

from torchcaps.train.distributed import World
from torchcaps.train.recipe import TrainingSection
from torchcaps.train.step import TrainingStep

__all__ = ["FallbackWarning", "StepRunner", "wants_compile"]

WARM_UP_STEPS = 3  # before a capture: lazy allocations, autotuning and compilation happen here
WORTH_COMPILING = 500  # steps; below, compiling takes longer than it saves


class FallbackWarning(UserWarning):
    """A faster way was wanted and could not be taken; the results are the same."""


def wants_compile(section: TrainingSection, device: torch.device, steps: int) -> bool:
    """Whether to compile: when told so, or on a GPU for a run that is long enough."""
    if section.compile == "auto":
        return device.type == "cuda" and steps >= WORTH_COMPILING
    return section.compile == "on"


class StepRunner:
    """Runs a :class:`TrainingStep`: first as it is, then, on one GPU, by replaying its capture.

    The first steps after a start are ordinary training steps and serve as the warm-up that a capture needs, so that a
    captured run takes the same steps as a plain one.
    """

    def __init__(
        self,
        step: TrainingStep,
        section: TrainingSection,
        world: World,
        compiled: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.step = step
        self.mode = "eager"
        self._tell = tell or _warn
        self._plain = step.objective
        self._graph: torch.cuda.CUDAGraph | None = None
        self._taken = 0
        self._capture = self._may_capture(section, world)
        # Everything before the first replay runs on a side stream, as a capture asks for.
        self._stream = _side_stream(world.device) if self._capture else None
        if compiled:
            step.objective = torch.compile(step.objective, dynamic=False)  # type: ignore[assignment]
            step.batch = torch.compile(step.batch, dynamic=False)  # a dozen small kernels become two or three
            self.mode = "compiled"

    def run(self) -> None:
        """Take one step; ``TrainingStep.prepare`` was called before."""
        if self._graph is not None:
            self._graph.replay()
            return
        if self._capture and self._taken >= WARM_UP_STEPS:
            self._try_capture()
            if self._graph is not None:
                self._graph.replay()
                return
        if self._taken == 0 and self.mode == "compiled":
            self._first_compiled_step()
        else:
            self._on_side_stream(self.step)
        self._taken += 1

    def release(self) -> None:
        """Give the step back as it was; its compiled form has copies of all that the wrapper of gradients holds."""
        self.step.objective, self.step.batch = self._plain, self.step.feed.batch

    def _may_capture(self, section: TrainingSection, world: World) -> bool:
        if section.capture == "off":
            return False
        reason = None
        if world.device.type != "cuda":
            reason = f"CUDA graphs need a CUDA device, this is {world.device.type}"
        elif world.size > 1:
            reason = "with several processes the step is not captured"
        if reason and section.capture == "on":
            self._tell(f"the step runs without a CUDA graph: {reason}")
        return reason is None

    def _first_compiled_step(self) -> None:
        """Compilation happens in the first forward pass, before any weight has changed: a failure can be undone.

        The making of the batch is given up first, since the network gains most.
        """
        try:
            self._on_side_stream(self.step)
        except Exception as error:  # any compiler, any reason
            if self.step.batch != self.step.feed.batch:
                self.step.batch = self.step.feed.batch
                self._tell(f"torch.compile failed, batches are made uncompiled if they are why: {_first_line(error)}")
                self._first_compiled_step()
                return
            self.step.objective = self._plain
            self.mode = "eager"
            self._tell(f"torch.compile failed, the step runs uncompiled and slower: {_first_line(error)}")
            self._on_side_stream(self.step)

    def _try_capture(self) -> None:
        self._capture = False
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # The peak is to be that of a step: the warm-up also searched for convolutions, with memory of its own.
        torch.cuda.reset_peak_memory_stats()
        try:
            self.step.optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(graph, stream=self._stream):
                self.step()
        except Exception as error:  # the step itself works, as the warm-up has shown; only its capture does not
            torch.cuda.synchronize()
            self._tell(f"the step could not be captured in a CUDA graph and runs without: {_first_line(error)}")
            return
        self._graph = graph
        self.mode = f"{self.mode} in a CUDA graph"

    def _on_side_stream(self, step: Callable[[], None]) -> None:
        if self._stream is None:
            step()
            return
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            step()
        torch.cuda.current_stream().wait_stream(self._stream)


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all runs of a process: libraries keep workspaces for every stream that they have seen."""
    return torch.cuda.Stream(device)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {' '.join(text[:2]) if text else 'no message'}"


def _warn(message: str) -> None:
    warnings.warn(message, FallbackWarning, stacklevel=3)
