"""A real browser, and a studio with trained networks; skipped with a reason where either cannot be had."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.studio_process import running_studio

from studio.browser.screens import Screens
from studio.browser.trained import trained_networks

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
STATIC = Path(__file__).parents[3] / "src" / "torchcaps" / "studio" / "static"


def _missing() -> str | None:
    """Why no browser test can run here."""
    if shutil.which("chromium") is None:
        return "needs the program chromium on the path, and none is here"
    for package in ("playwright", "fastapi", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            return f"needs the package {package}, and it is not installed"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _missing()
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        item.add_marker(pytest.mark.browser)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def networks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Run folders of the capsule network and of the CNN."""
    cache = getattr(request.config, "cache", None)  # absent with -p no:cacheprovider
    if cache is None:
        base = tmp_path_factory.getbasetemp()
        folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "studio-networks"
        folder.mkdir(exist_ok=True)
    else:
        folder = cache.mkdir("torchcaps-studio-networks")
    torch.use_deterministic_algorithms(False)  # training is seeded already, and this would only slow it
    return trained_networks(folder)


@pytest.fixture(scope="session")
def studio_address(networks: tuple[Path, Path]) -> Iterator[str]:
    """A studio in a process of its own."""
    with running_studio([str(folder) for folder in networks]) as studio:
        yield studio.address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_screens(chromium: Any) -> Iterator[Any]:
    """Opens a page at an address; at the end none may have complained or asked another machine."""
    opened: list[Screens] = []

    def open_screens(address: str, width: int = 1280, height: int = 800, **context: Any) -> Screens:
        screens = Screens(chromium.new_context(viewport={"width": width, "height": height}, **context), address)
        opened.append(screens)
        return screens

    yield open_screens
    for screens in opened:
        screens.close()
    for screens in opened:
        assert screens.complaints == []
        assert screens.strangers == []


@pytest.fixture
def screens(open_screens: Any, studio_address: str) -> Screens:
    return open_screens(studio_address)
