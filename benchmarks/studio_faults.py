"""Send a studio what it must refuse, and see that it does: 4xx each time, no traceback, nothing on the disk."""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.testclient import TestClient

from benchmarks.studio_hostile import Fault, chance_faults, hostile_paths, hostile_tensors, hostile_uploads
from torchcaps.studio import Catalogue, create_app
from torchcaps.studio.tensors import MEDIA_TYPE

LONGEST_PATH = 60_000  # no client sends more
ADDRESS = "http://127.0.0.1"
CHANGING_EVENTS = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
SIGNS_OF_A_TRACEBACK = ("Traceback", 'File "', ".py", "site-packages")


class DiskWatch:
    """Notes every attempt of this process to change the disk, while it is asked to look."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._looking = False
        sys.addaudithook(self._note)  # stays for good, hence the switch

    @contextmanager
    def looking(self) -> Iterator[None]:
        self._looking = True
        try:
            yield
        finally:
            self._looking = False

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._looking:
            return
        written = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if written or event in CHANGING_EVENTS:
            self.seen.append(f"{event} {arguments[0]}")


class Attacker:
    """Sends requests to a studio in this process and keeps what went wrong."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.watch = DiskWatch()
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []

    def send(self, fault: Fault) -> Any:
        """Send one, judge the answer and return it."""
        with self.watch.looking():
            answer = self.client.request(fault.method, fault.path, content=fault.body, headers=fault.headers)
        self.judge(fault.name, answer.status_code, answer.text)
        return answer

    def judge(self, name: str, status: int, text: str) -> None:
        """Every malformed request is answered with 4xx and one sentence."""
        self.statuses[status] += 1
        if not 400 <= status < 500:
            self.problems.append(f"{name}: status {status}")
        if any(sign in text for sign in SIGNS_OF_A_TRACEBACK) or '"error"' not in text:
            self.problems.append(f"{name}: says {text[:100]!r}")

    def is_alive(self, model_id: str) -> bool:
        """Whether an ordinary prediction still works."""
        image = self.client.get("/api/examples/0").content
        answer = self.client.post(
            f"/api/models/{model_id}/forward", content=image, headers={"content-type": MEDIA_TYPE}
        )
        return answer.status_code == 200


@contextmanager
def attacked_studio(model: str) -> Iterator[tuple[Attacker, str, tuple[int, int, int], Any]]:
    """A studio with one model: the attacker, the id, the shape of its pictures, and the application."""
    catalogue = Catalogue([model])
    facts = catalogue.facts()[0]
    app = create_app(catalogue)
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        client.get(f"/api/models/{facts.id}/statistics")  # imports and caches are not what is tested
        client.post(f"/api/models/{facts.id}/forward", content=b"")
        C, H, W = facts.image_shape
        yield Attacker(client), facts.id, (C, H, W), app


def hand_made(model_id: str, image_shape: tuple[int, int, int]) -> Iterator[Fault]:
    """All hostile requests once."""
    return itertools.chain(hostile_uploads(model_id), hostile_tensors(model_id, image_shape), hostile_paths(model_id))


def schema_faults(app: Any, attacker: Attacker, model_id: str, count: int) -> int:
    """Let schemathesis break the OpenAPI description ``count`` times, evenly over the operations; returns how often."""
    import requests
    import schemathesis
    from hypothesis import HealthCheck, Phase, assume, given, settings
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    conformance = [content_type_conformance, response_schema_conformance, status_code_conformance]
    schemathesis.serializer.alias(MEDIA_TYPE, "application/octet-stream")
    schema = schemathesis.openapi.from_dict(app.openapi())
    every = [result.ok() for result in schema.get_all_operations()]
    operations = [one for one in every if one.query or one.path_parameters or one.body]  # else nothing can be malformed
    described = app.openapi()["paths"]
    sent = 0
    for operation in operations:

        @settings(
            max_examples=-(-count // len(operations)),
            database=None,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        def attack(case: Any) -> None:
            nonlocal sent
            modes = {str(location.value): info.mode for location, info in case.meta.components.items()}
            if (
                "model_id" in case.path_parameters
                and modes.pop("path", None)
                and GenerationMode.NEGATIVE in modes.values()
            ):
                case.path_parameters["model_id"] = model_id  # the fault is elsewhere: get past the door
            request = requests.Request(**case.as_transport_kwargs(base_url=ADDRESS)).prepare()
            body = request.body.encode() if isinstance(request.body, str) else bytes(request.body or b"")
            path = (request.url or "").removeprefix(ADDRESS)
            assume(request.method != "GET" or not fits_description(described[case.operation.path]["get"], case, path))
            assume(len(path) < LONGEST_PATH)
            name = f"schemathesis {path}"
            answer = attacker.send(Fault(name, path, body, request.method or "GET", dict(request.headers)))
            try:
                case.validate_response(answer, checks=conformance)
            except Exception as error:  # a failure, or a group of them
                attacker.problems.append(f"{name}: answered otherwise than described: {error}")
            sent += 1

        attack()
    return sent


def fits_description(operation: dict[str, Any], case: Any, path: str) -> bool:
    """Whether a request is a right one after all, once lists and numbers are written as text."""
    query = parse_qsl(urlsplit(path).query, keep_blank_values=True)
    declared = {parameter["name"]: parameter for parameter in operation.get("parameters", ())}
    given = {name: text for name, text in [*case.path_parameters.items(), *query] if name in declared}
    right = all(_fits(declared[name]["schema"], str(text)) for name, text in given.items())
    missing = [name for name, parameter in declared.items() if parameter["required"] and name not in given]
    return right and not missing and len(given) == len(query) + len(case.path_parameters)


def _fits(schema: dict[str, Any], text: str) -> bool:
    if "anyOf" in schema:
        return any(_fits(choice, text) for choice in schema["anyOf"] if choice.get("type") != "null")
    if schema.get("type") in ("integer", "number"):
        form = r"-?[0-9]+" if schema["type"] == "integer" else r"-?[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?"
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        return re.fullmatch(form, text) is not None and low <= float(text) <= high
    right = text in schema.get("enum", [schema.get("const", text)])
    return right and len(text) <= schema.get("maxLength", math.inf) and bool(re.search(schema.get("pattern", ""), text))


def run_faults(model: str, count: int) -> int:
    """``count`` malformed requests; prints a summary and returns the exit status."""
    with attacked_studio(model) as (attacker, model_id, image_shape, app):
        made = [attacker.send(fault) for fault in hand_made(model_id, image_shape)]
        print(f"{len(made)} hostile requests made by hand")
        sent = schema_faults(app, attacker, model_id, (count - len(made)) // 2)
        print(f"{sent} by schemathesis against the OpenAPI description")
        rest = max(0, count - len(made) - sent)
        for fault in itertools.islice(chance_faults(model_id, image_shape), rest):
            attacker.send(fault)
        print(f"{rest} by chance, wrong by construction")
        alive = attacker.is_alive(model_id)
    print("answers:", ", ".join(f"{status}: {number}" for status, number in sorted(attacker.statuses.items())))
    print(f"server alive: {alive}; writes to disk: {len(attacker.watch.seen)}; problems: {len(attacker.problems)}")
    for line in (*attacker.problems[:20], *attacker.watch.seen[:20]):
        print(" ", line)
    return 0 if alive and not attacker.problems and not attacker.watch.seen else 1


__all__ = ["Attacker", "attacked_studio", "hand_made", "run_faults", "schema_faults"]
