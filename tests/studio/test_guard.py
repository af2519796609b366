"""Who may ask, and what every answer carries."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from torchcaps.studio import create_app


def test_every_answer_carries_the_headers_that_keep_a_page_to_itself(client):
    for path in ("/", "/api/models", "/nothing", "/api/models/none/decoder"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765"])
def test_loopback_is_answered(client, host):
    assert client.get("/config.json", headers={"host": host}).status_code == 200
    assert client.get("/config.json", headers={"host": host, "origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "10.0.0.1", "127.0.0.1.evil.example", "", "[::1", "[fe80::1]"])
def test_other_names_are_refused(client, host):
    answer = client.get("/api/models", headers={"host": host})
    assert (answer.status_code, set(answer.json())) == (403, {"error"})


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:81", ""])
def test_other_origins_are_refused(client, origin):
    assert client.get("/api/models", headers={"origin": origin}).status_code == 403
    assert client.post("/api/upload?model=small", headers={"origin": origin}).status_code == 403


def test_another_site_may_link_here_and_no_more(client):
    cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=cross).status_code == 200
    assert client.get("/api/models", headers=cross).status_code == 403
    for site in ("cross-site", "same-site"):  # the latter is another port, or another name of the same domain
        assert client.get("/app.js", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}).status_code == 403


def test_a_named_host_and_numeric_addresses_where_wanted(catalogue):
    with TestClient(create_app(catalogue, hosts=["caps.example", "*"]), base_url="http://caps.example") as client:
        assert client.get("/config.json").status_code == 200
        assert client.get("/config.json", headers={"host": "192.168.0.7:80"}).status_code == 200
        assert client.get("/config.json", headers={"host": "evil.example"}).status_code == 403


def test_a_body_is_counted_and_not_believed(client):
    def much():
        for _ in range(60):
            yield bytes(1_000_000)

    assert client.post("/api/models/small/forward", content=much()).status_code == 413  # no Content-Length
    lying = client.post("/api/models/small/forward", content=bytes(10), headers={"content-length": "-1"})
    assert lying.status_code == 400


def test_openapi_declares_every_route_and_loads_nothing_from_elsewhere(client):
    description = client.get("/api/openapi.json").json()
    assert len(description["paths"]) == 13
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404


def test_no_other_protocol_is_spoken(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/models"):
        pass


def test_a_fault_of_ours_is_told_without_details(catalogue, monkeypatch):
    monkeypatch.setattr("torchcaps.studio.looking.decoder_weights", lambda *_: 1 / 0)
    with TestClient(create_app(catalogue), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        answer = client.get("/api/models/small/decoder")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the studio failed at this request; its terminal shows why"}
