"""The package as a whole: layers that only look down, quick import, examples that run."""

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchcaps

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "torchcaps"
ORDER = ["errors", "ops", "nn", "models", "data", "eval", "train", "studio", "cli"]


def imported_packages(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "torchcaps":
                names |= {alias.name for alias in node.names}
            elif node.module.startswith("torchcaps."):
                names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("torchcaps.")}
    return names


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_from_those_before_it(package):
    for file in (PACKAGE / package).rglob("*.py"):
        later = imported_packages(file) & set(ORDER[ORDER.index(package) + 1 :])
        assert not later, f"{file.relative_to(ROOT)} imports {later}, which comes after {package}"


def test_import_adds_less_than_three_tenths_of_a_second():
    program = (
        "import torch, time; start = time.process_time(); import torchcaps.nn; print(time.process_time() - start);"
        "import sys; print(*(m for m in ('torch._dynamo', 'huggingface_hub', 'matplotlib') if m in sys.modules))"
    )

    def seconds() -> float:
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        taken, heavy = run.stdout.splitlines()
        assert heavy.strip() == ""
        return float(taken)

    assert any(seconds() < 0.3 for _ in range(3))  # other work on the machine only adds


def test_the_package_alone_does_not_import_torch():
    program = "import sys, torchcaps; assert 'torch' not in sys.modules; torchcaps.ops; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_public_name_exists_and_is_documented():
    for name in torchcaps.__all__:
        assert getattr(torchcaps, name) is not None
    for module in (torchcaps.ops, torchcaps.nn, torchcaps.models, torchcaps.data, torchcaps.testing):
        for name in module.__all__:
            thing = getattr(module, name)
            assert not callable(thing) or thing.__doc__ or isinstance(thing, type(torchcaps.nn.Routing)), name
    with pytest.raises(AttributeError, match="no attribute 'capsule'"):
        torchcaps.capsule  # noqa: B018


def modules_with_examples() -> list[str]:
    files = sorted(file for file in PACKAGE.rglob("*.py") if ">>> " in file.read_text())
    return [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    torch.set_printoptions(profile="default")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


def readme_snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("snippet", readme_snippets(), ids=range(len(readme_snippets())))
def test_readme_snippets_run(snippet, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "README.md", "exec"), {})


def test_files_stay_small():
    for file in PACKAGE.rglob("*.py"):
        assert len(file.read_text().splitlines()) <= 300, f"{file.relative_to(ROOT)} holds more than one idea"
