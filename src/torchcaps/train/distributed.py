"""One process or several under ``torchrun``: who am I, which device is mine, and what the others saw."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn

from torchcaps.errors import TorchcapsError

__all__ = ["World", "choose_device", "joined_world", "process_rank"]


@dataclass(frozen=True)
class World:
    """One process among all of them; a plain run is a world of one."""

    device: torch.device
    rank: int = 0
    size: int = 1
    _wrapped: list[nn.Module] = field(default_factory=list, repr=False, compare=False)

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values

    def anyone(self, flag: bool) -> bool:
        """Whether any process says so; all get the same answer."""
        if self.size == 1:
            return flag
        return bool(self.summed(torch.tensor(float(flag), device=self.device)).item())

    def wait(self) -> None:
        """Go on when all are here."""
        if self.size > 1:
            dist.barrier()

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with gradients averaged over all processes."""
        if self.size == 1:
            return module
        ids = [self.device.index] if self.device.type == "cuda" else None
        wrapped = nn.parallel.DistributedDataParallel(module, device_ids=ids)
        self._wrapped.append(wrapped)
        return wrapped

    def leave(self) -> None:
        """End the process group, and its threads with it.

        Wrapped modules let go of it first. The last to hold it waits for its threads, and a module would do so without
        giving the interpreter free, which a thread may need to drop its last tensor: neither would ever end.
        """
        for wrapped in self._wrapped:
            for holder in ("reducer", "logger", "process_group"):
                setattr(wrapped, holder, None)
        dist.destroy_process_group()


@contextmanager
def joined_world(device: str = "auto") -> Iterator[World]:
    """The world that ``torchrun`` describes in the environment, left again at the end."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), process_rank()
    chosen = choose_device(device)
    if size == 1:
        yield World(chosen)
        return
    if chosen.type == "cuda":
        chosen = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(chosen)
    mine = not dist.is_initialized()
    if mine:
        _open_group(chosen)
    world = World(chosen, rank, size)
    try:
        yield world
    finally:
        if mine:
            world.leave()


def _open_group(device: torch.device) -> None:
    # The functions of this module take the world as a default argument. Imported while there is one, as the wrapper of
    # gradients does, they keep it and its threads past its end, and a late thread aborts the process at its exit.
    importlib.import_module("torch.distributed.nn.functional")
    if device.type == "cuda":
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")


def process_rank() -> int:
    """Number of this process among those that ``torchrun`` started; 0 for a plain run."""
    return int(os.environ.get("RANK", "0"))


def choose_device(name: str = "auto") -> torch.device:
    """``"auto"`` is the GPU where there is one; a device that is not there is an error."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TorchcapsError(f"no device is named {name!r}; try cpu, cuda or cuda:1") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        seen = f"PyTorch sees {count} GPU(s) here" if count else "PyTorch sees no GPU here"
        raise TorchcapsError(f"the device {name} is not on this machine: {seen}; use --device cpu, or leave it out")
    return device
