"""Nothing in the package lets a stranger's bytes run: no call that could, and none at work while all readers read."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml", "jsonpickle"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {  # by module: what runs or unpickles the contents of a file
    "np": {"load", "fromregex"},
    "numpy": {"load", "fromregex"},
    "torch": {"load"},
    "torch.jit": {"load"},
    "torch.hub": {"load", "load_state_dict_from_url"},
    "ast": {"literal_eval"},
    "scipy.io": {"loadmat"},
    "os": {"system", "popen"},
}


def suspects(source: str) -> list[str]:
    """What a module imports or calls that could run the contents of a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                found += [name.name for name in names if name.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module, names) if module:
                found += [module for _ in names[:1] if module.split(".")[0] in MODULES]
                found += [f"{module}.{name.name}" for name in names if name.name in CALLS.get(module, ())]
            case ast.Call(ast.Name(name)) if name in BUILTINS:
                found.append(name)
            case ast.Call(ast.Attribute(owner, name)):
                if name in CALLS.get(place := ast.unparse(owner), ()):
                    found.append(f"{place}.{name}")
            case ast.keyword("allow_pickle" | "weights_only", value):
                found.append(f"{node.arg}={ast.unparse(value)}")
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import pickle", ["pickle"]),
        ("from pickle import loads", ["pickle"]),
        ("from numpy import load", ["numpy.load"]),
        ("import numpy as np\nnp.load(file, allow_pickle=False)", ["np.load", "allow_pickle=False"]),
        ("torch.load(path)", ["torch.load"]),
        ("torch.jit.load(path)", ["torch.jit.load"]),
        ("eval(text)", ["eval"]),
        ("model.eval(); torch.compile(model); re.compile(text); json.load(file)", []),
    ],
)
def test_the_search_finds_what_it_looks_for(source, expected):
    assert sorted(suspects(source)) == sorted(expected)


def test_no_module_unpickles_or_evaluates():
    files = sorted((ROOT / "src").rglob("*.py"))
    assert len(files) > 100
    found = {str(file.relative_to(ROOT)): suspects(file.read_text("utf-8")) for file in files}
    assert {name: what for name, what in found.items() if what} == {}


WATCH = """
import json, sys, tempfile
from pathlib import Path
from PIL import Image
from tests.data.exploits import EXPLOITS, Harmless
from tests.soak import targets_data, targets_files
from tests.soak.mutate import input_of
import pickle, warnings

warnings.simplefilter("ignore")
WATCHED = {"pickle.find_class", "exec", "compile", "marshal.loads", "marshal.load", "os.system", "os.exec", "os.fork",
           "os.posix_spawn", "subprocess.Popen", "ctypes.dlopen", "code.__new__", "import"}
seen, watching = [], False

def hook(event, arguments):
    if watching and event in WATCHED:
        seen.append(f"{event} {str(arguments)[:200]}")

sys.addaudithook(hook)
Image.init()  # imports all decoders
scratch = Path(tempfile.mkdtemp())
work, refused = [], 0
for target in (*targets_data.TARGETS, *targets_files.TARGETS):
    seeds = target.seeds(Path(tempfile.mkdtemp()))
    place = Path(tempfile.mkdtemp())
    inputs = seeds + [input_of(target, seeds, 3, index) for index in range(12)]
    work += [(target.read, data, place) for data in inputs]
work += [(exploit.read, exploit.make(), Path(tempfile.mkdtemp())) for exploit in EXPLOITS]
for watching in (False, True):  # the first time, what is imported late comes in
    for read, data, place in work:
        try:
            read(data, place)
        except Exception:
            refused += watching
before = list(seen)
pickle.loads(pickle.dumps(Harmless()))  # the hook sees what it is for
print(json.dumps({"readers": before, "control": seen[len(before):], "inputs": len(work), "refused": refused}))
"""


def test_no_reader_unpickles_imports_or_runs_anything():
    """The interpreter's own audit events, while every reader of data reads valid, damaged and forged files."""
    finished = subprocess.run(
        [sys.executable, "-c", WATCH], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)
    assert told["readers"] == []
    assert any("pickle.find_class" in event for event in told["control"])
    assert told["inputs"] > 250
    assert 100 < told["refused"] < told["inputs"]
