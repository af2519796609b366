"""The built page that is shipped: small, nothing from elsewhere, and what its sources give."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "studio-web"
BUILT = ROOT / "src" / "torchcaps" / "studio" / "static"
FILES = sorted(path.relative_to(BUILT).as_posix() for path in BUILT.rglob("*") if path.is_file())

needs_node = pytest.mark.skipif(
    shutil.which("npm") is None or not (SOURCES / "node_modules").is_dir(),
    reason="needs Node.js and the packages of studio-web; npm ci there installs them",
)


def run_npm(*command: str) -> None:
    environment = os.environ | {"NO_COLOR": "1"}
    done = subprocess.run(["npm", *command], cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_small():
    assert {"index.html", "app.js", "app.css", "worker.js"} <= set(FILES)
    assert sum(len(gzip.compress((BUILT / name).read_bytes())) for name in FILES) < 300_000


def test_nothing_is_inline_or_from_elsewhere():
    page = (BUILT / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    assert all(address.startswith("./") for address in re.findall(r'(?:src|href)="([^"]+)"', page))
    css = (BUILT / "app.css").read_text()
    assert "@import" not in css
    assert not re.search(r"url\((?!#)", css)


@needs_node
def test_the_built_files_are_what_the_sources_give(tmp_path):
    run_npm("run", "build", "--", "--outDir", str(tmp_path / "static"), "--logLevel", "error")
    again = {path.relative_to(tmp_path / "static").as_posix(): path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert sorted(again) == FILES
    for name, content in again.items():
        assert content == (BUILT / name).read_bytes(), f"{name} is out of date: npm run build in studio-web"


@needs_node
def test_the_mathematics_of_the_page_equals_pytorch():
    run_npm("test")
