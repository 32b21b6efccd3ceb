"""The door of the studio: this machine, our own page, with the token; nobody else, and nothing leaves."""

from __future__ import annotations

import asyncio
import http.client
import io
import re
import socket
from pathlib import Path

import pytest

viser = pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
from tangere.errors import InvalidValue  # noqa: E402
from tangere.studio import door as doors  # noqa: E402


@pytest.fixture(scope="module")
def open_door():
    server, door = doors.guarded_server()
    yield server, door, server.get_port()
    doors.stop(server)


def get(port, path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest("GET", path, skip_host=True)
        for name, value in ({"Host": f"127.0.0.1:{port}"} | headers).items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def connected(port, origin, token, message=None):
    """Whether a websocket is let in; a message is sent through it."""
    import websockets

    async def knock():
        headers = {} if token is None else {"Cookie": f"{doors.cookie_name(port)}={token}"}
        try:
            async with websockets.connect(
                f"ws://127.0.0.1:{port}", subprotocols=[f"viser-v{viser.__version__}"], origin=origin,
                additional_headers=headers, max_size=None,
            ) as socket_:  # fmt: skip
                await asyncio.wait_for(socket_.recv(), 30)
                if message is not None:
                    await socket_.send(message)
                    await asyncio.sleep(0.3)
                return True
        except websockets.exceptions.InvalidStatus as problem:
            return problem.response.status_code != 403

    return asyncio.run(knock())


def test_the_page_comes_with_the_token_and_then_with_the_cookie(open_door):
    _, door, port = open_door
    status, headers, body = get(port, f"/?token={door.token}")
    assert status == 200
    assert b"<html" in body[:400].lower() or headers["Content-Encoding"] == "gzip"
    cookie = headers["Set-Cookie"]
    assert re.fullmatch(rf"tangere_{port}={re.escape(door.token)}; Path=/; HttpOnly; SameSite=Strict", cookie)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert f"connect-src 'self' ws://127.0.0.1:{port} blob: data:;" in policy
    assert get(port, "/", Cookie=f"{doors.cookie_name(port)}={door.token}")[0] == 200


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=guess", "/index.html", "/../etc/passwd"])
def test_without_the_token_nothing_is_shown(open_door, path):
    status, headers, body = get(open_door[2], path)
    assert (status, headers["Set-Cookie"]) == (403, None)
    assert b"token" in body
    assert open_door[1].token.encode() not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", None])
def test_another_host_is_refused_with_the_token_too(open_door, host):
    _, door, port = open_door
    assert get(port, f"/?token={door.token}", Host=host)[0] in (400, 403)


def test_another_origin_or_none_gets_no_socket(open_door):
    _, door, port = open_door
    own = f"http://127.0.0.1:{port}"
    assert connected(port, own, door.token)
    for origin in (None, "null", "http://evil.example", f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}"):
        assert not connected(port, origin, door.token), origin
    for token in (None, "", "guess", door.token[:-1]):
        assert not connected(port, own, token), token


def test_the_message_that_opens_a_tunnel_does_nothing(open_door, monkeypatch):
    import msgspec

    server, door, port = open_door
    called = []
    monkeypatch.setattr(type(server), "request_share_url", lambda *a, **k: called.append(a))
    handlers = server._websock_server._incoming_handlers
    assert not [kind for kind in handlers if "Share" in kind.__name__]
    before = len(handlers)
    connected(port, f"http://127.0.0.1:{port}", door.token, msgspec.msgpack.encode({"type": "ShareUrlRequest"}))
    assert called == []
    assert len(handlers) == before


def test_nothing_is_said_to_a_notebook(monkeypatch):
    """Where there is one, the library's words go around the standard output."""
    console, heard = pytest.importorskip("rich").get_console(), io.StringIO()
    monkeypatch.setattr(console, "_file", heard)
    doors.stop(doors.guarded_server()[0])
    assert heard.getvalue() == ""
    assert not console.quiet
    console.print("others are heard")
    assert heard.getvalue()


def test_only_loopback_listens(open_door):
    port = open_door[2]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        if state == "0A" and int(local.split(":")[1], 16) == port:
            assert local.split(":")[0] == "0100007F"
            break
    else:
        pytest.fail("nobody listens")
    six = Path("/proc/net/tcp6").read_text().splitlines()[1:]
    assert not [line for line in six if line.split()[1].endswith(f":{port:04X}")]


def test_a_port_that_is_taken_is_refused_or_passed_over(open_door):
    port = open_door[2]
    with pytest.raises(InvalidValue, match=f"--port: {port} is taken"):
        doors.guarded_server(port)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InvalidValue, match="is taken by another program"):
            doors.free_port(other.getsockname()[1])
    assert doors.free_port(None) != port
    for wrong in (0, 70000, -1):
        with pytest.raises(InvalidValue, match="1 to 65535"):
            doors.free_port(wrong)


def test_the_version_that_the_door_fits_is_the_one_that_is_asked_for(root):
    asked = re.search(r'studio = \["viser==([\d.]+)"', (root / "pyproject.toml").read_text())
    assert asked is not None
    assert viser.__version__ == asked[1]


def test_nothing_of_viser_is_printed_past_stdout_either(monkeypatch):
    """As in a notebook, where rich shows what it prints without stdout."""
    import rich

    past = io.StringIO()
    monkeypatch.setattr(rich.get_console(), "_file", past)
    server, _ = doors.guarded_server()
    doors.stop(server)
    assert past.getvalue() == ""
    rich.print("heard")
    assert past.getvalue() == "heard\n"
