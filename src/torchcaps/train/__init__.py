"""Training: recipes, the engine, run folders. ``fit`` is the way in."""

from typing import TYPE_CHECKING

from torchcaps._lazy import imported_on_demand

if TYPE_CHECKING:
    from torchcaps.train.fitting import RunResult, default_run_dir, fit
    from torchcaps.train.recipe import Recipe, RecipeError
    from torchcaps.train.recipe_files import list_recipes, load_recipe, recipe_header, recipe_text, save_recipe

__all__ = [
    "Recipe",
    "RecipeError",
    "RunResult",
    "default_run_dir",
    "fit",
    "list_recipes",
    "load_recipe",
    "recipe_header",
    "recipe_text",
    "save_recipe",
]

_HOME = {
    "Recipe": "recipe",
    "RecipeError": "recipe",
    "RunResult": "fitting",
    "default_run_dir": "fitting",
    "fit": "fitting",
    "list_recipes": "recipe_files",
    "load_recipe": "recipe_files",
    "recipe_header": "recipe_files",
    "recipe_text": "recipe_files",
    "save_recipe": "recipe_files",
}
__getattr__, __dir__ = imported_on_demand(__name__, _HOME, __all__)
