"""Models by name."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from torchcaps.errors import TorchcapsError
from torchcaps.models.shipped import list_pretrained, shipped_folder

if TYPE_CHECKING:
    from torchcaps.models.base import Model

__all__ = ["create_model", "from_pretrained", "list_models", "register_model"]

_MODELS: dict[str, type[Model]] = {}
M = TypeVar("M", bound="type[Model]")


def register_model(name: str) -> Callable[[M], M]:
    """Class decorator that makes a model known to :func:`create_model` under ``name``."""

    def register(model_class: M) -> M:
        if name in _MODELS:
            raise ValueError(f"a model named {name!r} exists already ({_MODELS[name].__name__}); choose another name")
        model_class.architecture = name
        _MODELS[name] = model_class
        return model_class

    return register


def list_models(pattern: str = "*") -> list[str]:
    """Names of the models that match a pattern such as ``"caps*"``."""
    return sorted(name for name in _MODELS if fnmatch(name, pattern))


def create_model(name: str, **settings: Any) -> Model:
    """Build a model with fresh start values; ``settings`` are the arguments of its class.

    Example:
        >>> import torchcaps
        >>> model = torchcaps.create_model("capsnet", image_shape=(3, 32, 32), num_classes=5, preset="paper")
        >>> sum(p.numel() for p in model.classes.parameters())
        1310720
    """
    if name not in _MODELS:
        raise ValueError(f"unknown model {name!r}; choose from {', '.join(map(repr, list_models()))}")
    allowed = _MODELS[name].__init__.__annotations__.keys() - {"return"}
    for key in settings:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(allowed))}"
            raise TypeError(f"{name!r} has no setting {key!r}; {hint}")
    return _MODELS[name](**settings)


def from_pretrained(name_or_path: str | Path, *, strict: bool = True, **keywords: Any) -> Model:
    """Load a trained model by name (:func:`list_pretrained`), from a folder, or from the Hugging Face hub.

    A folder is one that ``save_pretrained`` wrote; a name on the hub is ``"owner/name"``. Shipped weights are stored as
    16-bit floats and read back as 32-bit ones.

    ``strict`` refuses weights that lack a layer. Keywords go to huggingface_hub, for example ``revision=`` or
    ``local_files_only=True``.
    """
    folder = Path(name_or_path)
    shipped = None if folder.is_dir() else shipped_folder(name_or_path)
    if shipped is not None:
        name_or_path = folder = shipped
    if folder.is_dir():
        config_file = folder / "config.json"
        if not config_file.is_file():
            raise TorchcapsError(f"{folder} holds no config.json; give a folder that model.save_pretrained wrote")
    elif str(name_or_path).count("/") == 1 and not folder.is_absolute():
        from huggingface_hub import hf_hub_download

        config_file = Path(hf_hub_download(str(name_or_path), "config.json", **keywords))
    else:
        raise TorchcapsError(
            f"{name_or_path} is neither a folder that model.save_pretrained wrote, nor shipped with the package "
            f"({', '.join(list_pretrained()) or 'nothing is'}), nor a hub name such as 'owner/name'"
        )
    try:
        architecture = json.loads(config_file.read_text())["architecture"]
    except (ValueError, KeyError) as error:
        raise TorchcapsError(f"{config_file} is damaged or of another library: no architecture in it") from error
    if architecture not in _MODELS:
        raise TorchcapsError(
            f"{config_file} is for the architecture {architecture!r}, which is not known here; known are "
            f"{', '.join(list_models())}"
        )
    with contextlib.redirect_stdout(io.StringIO()):  # the hub library announces what it loads
        return _MODELS[architecture].from_pretrained(str(name_or_path), strict=strict, **keywords)
