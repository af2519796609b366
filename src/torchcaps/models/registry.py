"""Models by name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_model

from torchcaps._foreign import read_json_table, shown
from torchcaps.errors import TorchcapsError
from torchcaps.models.catalog import NETWORKS
from torchcaps.models.declared import check_weights, weights_of
from torchcaps.models.shipped import list_pretrained, shipped_folder
from torchcaps.ranges import check_values

if TYPE_CHECKING:
    from torchcaps.models.base import Model

__all__ = ["check_model_settings", "create_model", "from_pretrained", "list_models", "register_model"]

HUB_KEYWORDS = ("cache_dir", "force_download", "local_files_only", "revision", "token")
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
    check_model_settings(name, settings)
    weights_of(_MODELS[name], settings)  # a size that cannot be is an error before memory is taken
    return _MODELS[name](**settings)


def check_model_settings(name: str, settings: Mapping[str, Any], before: str = "") -> None:
    """Raise where a model of this name has no such setting, or a value is out of its range; unknown names pass.

    ``before`` is what the message puts before the name of a setting.
    """
    if name not in _MODELS:
        return
    check_values(_MODELS[name].__init__, settings, before)
    allowed = _MODELS[name].__init__.__annotations__.keys() - {"return"}
    for key in settings:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(allowed))}"
            raise TypeError(f"{name!r} has no setting {shown(key)}; {hint}")


def from_pretrained(name_or_path: str | Path, *, strict: bool = True, **keywords: Any) -> Model:
    """Load a trained model by name (:func:`list_pretrained`), from a folder, or from the Hugging Face hub.

    A folder is one that ``save_pretrained`` wrote; a name on the hub is ``"owner/name"``. Shipped weights are stored as
    16-bit floats and read back as 32-bit ones. Every way in which the files can be wrong is an error in words.

    ``strict`` refuses weights that lack a layer. ``map_location="cuda"`` loads to a device. Other keywords go to
    huggingface_hub, for example ``revision=`` or ``local_files_only=True``, or replace settings of the network.
    """
    folder = _folder(name_or_path, {key: keywords.pop(key) for key in HUB_KEYWORDS if key in keywords})
    config, weights = folder / "config.json", folder / "model.safetensors"
    if not config.is_file():
        raise TorchcapsError(f"{folder} holds no config.json; give a folder that model.save_pretrained wrote")
    if not weights.is_file():
        raise TorchcapsError(f"{folder} has no model.safetensors; the model was not saved completely, or was moved")
    architecture, settings = _read(config)
    settings |= {key: value for key, value in keywords.items() if key != "map_location"}
    try:
        check_model_settings(architecture, settings)
        declared = weights_of(_MODELS[architecture], settings)
    except (TypeError, ValueError) as error:
        raise TorchcapsError(f"{config} does not describe a network that can be built: {error}") from error
    try:
        if declared is not None:
            check_weights(weights, declared, strict)
        model = _MODELS[architecture](**settings)
        load_model(model, weights, strict=strict)
    except SafetensorError as error:
        raise TorchcapsError(
            f"{weights} is damaged or cut short ({error}); copy it again, or take another checkpoint of the run"
        ) from error
    except OSError as error:
        raise TorchcapsError(f"{folder} cannot be loaded: {error}") from error
    except (ValueError, RuntimeError) as error:
        raise TorchcapsError(
            f"the weights in {weights} belong to another network than config.json describes: {_first_lines(error)}"
        ) from error
    return model.to(keywords.get("map_location", "cpu")).eval()


def _folder(name_or_path: str | Path, hub: Mapping[str, Any]) -> Path:
    """The folder itself, that of shipped weights, or that of a copy fetched from the hub."""
    folder = Path(name_or_path).expanduser()
    if not folder.is_dir():
        folder = shipped_folder(name_or_path) or folder
    if folder.is_dir():
        return folder
    name = folder.as_posix()
    if name.count("/") != 1 or folder.is_absolute() or folder.parent.is_dir():
        raise TorchcapsError(
            f"{name_or_path} is neither a folder that model.save_pretrained wrote, nor shipped with the package "
            f"({', '.join(list_pretrained()) or 'nothing is'}), nor a hub name such as 'owner/name'"
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=["config.json", "model.safetensors"], **hub))
    except (OSError, ValueError) as error:  # no network, no such model, a name of the wrong form
        raise TorchcapsError(
            f"there is no folder {name}, and a model of that name could not be fetched from the hub "
            f"({_first_lines(error, 1)}); give a run folder, a model folder or the name of a public model"
        ) from error


def _read(config: Path) -> tuple[str, dict[str, Any]]:
    """Architecture and settings."""
    settings = read_json_table(config)
    if "architecture" not in settings:
        raise TorchcapsError(f"{config} is damaged or of another library: no architecture in it")
    architecture = settings.pop("architecture")
    if architecture not in list_models():
        raise TorchcapsError(
            f"{config} is for the architecture {shown(architecture)}, which is not known here; known are "
            f"{', '.join(list_models())}"
        )
    return architecture, settings


def _first_lines(error: Exception, count: int = 3) -> str:
    return " ".join(line.strip() for line in str(error).splitlines()[:count])


# The package's own networks register themselves; last, since their modules import this one.
for _network in NETWORKS:
    importlib.import_module(f"torchcaps.models.{_network.module}")
