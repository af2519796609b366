"""The Keras layer equals ops on both backends, trains on the embedded digits, and is saved and loaded."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("backend", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_backend(backend, tmp_path):
    for package in ("keras", backend):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'torchcaps[keras]' {backend}")
    result = subprocess.run(
        [sys.executable, HERE / "check_backend.py", backend],
        env={**os.environ, "KERAS_BACKEND": backend, "KERAS_HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert f"{backend}: 4 cases" in result.stdout


def test_without_keras_the_error_says_what_to_install():
    program = (
        "import sys; sys.modules['keras'] = None\n"
        "try:\n    import torchcaps.keras\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'torchcaps[keras]'" in output
