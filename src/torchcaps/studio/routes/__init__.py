"""The interface below ``/api``, a file for each kind of thing asked for."""

from torchcaps.studio.routes.examples import example_routes
from torchcaps.studio.routes.models import model_routes
from torchcaps.studio.routes.python import python_routes
from torchcaps.studio.routes.uploads import upload_routes

__all__ = ["example_routes", "model_routes", "python_routes", "upload_routes"]
