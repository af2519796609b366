"""Training: recipes, the engine, run folders. ``fit`` is the way in."""

from torchcaps.train.fit import RunResult, default_run_dir, fit
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
