"""The page's server behind a door: this machine only, our own page only, with a token, and nothing leaves.

By itself viser listens on every interface, asks neither for Host nor Origin nor a token, and opens a tunnel to the
internet when any client asks for it. It has no hook for that: the start of its websocket server is wrapped while the
server is built. That is a private place of version 1.1.1, which is why the version is pinned and a test knocks.
"""

from __future__ import annotations

import contextlib
import gzip
import hmac
import io
import json
import logging
import re
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tangere.errors import InvalidValue, MissingExtra, extra

HOST = "127.0.0.1"
FIRST_PORT = 8080  # where ports are looked for if none is given
PORTS = 100  # how many are tried
# scripts of the page itself are inline and build functions; everything else may come from, and go to, its own server
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; connect-src 'self' ws://{host} blob: data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
)
# who may show the page in a frame: itself, and a notebook on this machine
FRAMES = "'self' http://127.0.0.1:* http://localhost:*"

# what the page says where nothing can be drawn, in place of an empty one
NO_WEBGL = (
    "This browser has no WebGL 2, which the studio draws with. Turn on hardware acceleration in its settings, or open "
    "the address in another browser. `tangere report RUN` writes a page of a run that needs none."
)
_COVER = "position:fixed;inset:0;z-index:99999;background:#fff;color:#1d2733;font:16px/1.6 sans-serif;padding:12vh 12vw"
_CHECK = f"""<noscript>The studio needs JavaScript.</noscript><script>
addEventListener("DOMContentLoaded", () => {{
  let found = null;
  try {{ found = document.createElement("canvas").getContext("webgl2"); }} catch (e) {{ found = null; }}
  if (found) {{ found.getExtension("WEBGL_lose_context")?.loseContext(); return; }}
  const box = document.createElement("div");
  box.id = "no-webgl";
  box.textContent = {json.dumps(NO_WEBGL)};
  box.style = {json.dumps(_COVER)};
  document.body.appendChild(box);
}});
// keys are letters where one types; a box that was ticked and a choice that is made pass them on, as nothing had them
addEventListener("keydown", (event) => {{
  const there = event.target, plain = !event.ctrlKey && !event.metaKey && !event.altKey && /^[a-z]$/i.test(event.key);
  if (!plain || !(there.type === "checkbox" || there.getAttribute?.("aria-expanded") === "false")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  document.body.dispatchEvent(new KeyboardEvent("keydown", event));
}}, true);
</script>"""


@dataclass
class Door:
    """Who may come in. refused: why somebody was not let in, newest last."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    refused: list[str] = field(default_factory=list)

    def judged(self, headers: Any, path: str, port: int) -> str:
        """Why this request is refused; "": it is not."""
        hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        if len(headers.get_all("Host")) != 1 or headers.get("Host") not in hosts:
            return "Host"
        origins = {f"http://{host}" for host in hosts}
        wants_socket = "websocket" in headers.get("Upgrade", "").lower()
        if (wants_socket or "Origin" in headers) and headers.get("Origin", "") not in origins:
            return "Origin"
        pairs = (part.strip().partition("=") for text in headers.get_all("Cookie") for part in text.split(";"))
        shown = [value for name, _, value in pairs if name == cookie_name(port)]
        shown += parse_qs(urlsplit(path).query).get("token", [])
        own = self.token.encode()
        return "" if any(hmac.compare_digest(one.encode(), own) for one in shown) else "token"


def cookie_name(port: int) -> str:
    """Of the cookie that holds the token: cookies do not tell ports apart, names must."""
    return f"tangere_{port}"


def free_port(port: int | None) -> int:
    """The port that was asked for, or the next that is free; InvalidValue where it is taken."""
    if port is not None and not 1 <= port <= 65535:
        raise InvalidValue(f"--port: 1 to 65535, got {port}")
    for one in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, one))
            except PermissionError:
                raise InvalidValue(f"--port: {one} needs more rights than you have; take one above 1023") from None
            except OSError:
                continue
            return one
    if port is None:
        raise InvalidValue(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all taken; name one with --port N")
    raise InvalidValue(f"--port: {port} is taken by another program; leave --port out to get the next one that is free")


def viser_module() -> Any:
    """The page's library, or the line that installs it."""
    with extra("the studio needs viser: pip install 'tangere[studio]'"):
        import viser
    return viser


def guarded_server(port: int | None = None) -> tuple[Any, Door]:
    """A viser server on loopback behind a Door."""
    viser = viser_module()
    from viser import _messages
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    log = logging.getLogger("tangere.studio.door")
    log.propagate, log.disabled = False, True
    infra: Any = import_module("viser.infra._infra")
    door, place = Door(), infra.websockets.asyncio.server
    plain, wrapped = place.serve, []

    def serve(handler: Any, host: Any, asked: Any, *, process_request: Any = None, **more: Any) -> Any:
        def knock(connection: Any, request: Any) -> Any:
            own = int(connection.local_address[1])
            why = door.judged(request.headers, request.path, own)
            if why:
                door.refused.append(why)
                del door.refused[:-100]
                head = Headers({"Content-Type": "text/plain; charset=utf-8", "Connection": "close"})
                text = f"Not allowed: {why}. Open the address that `tangere studio` printed.\n"
                return Response(HTTPStatus.FORBIDDEN, "Forbidden", head, text.encode())
            answer = None if process_request is None else process_request(connection, request)
            if answer is not None:
                head = answer.headers
                if head.get("Content-Type", "").startswith("text/html"):
                    answer.body = own_page(answer.body, head.get("Content-Encoding") == "gzip")
                    del head["Content-Length"]
                    head["Content-Length"] = str(len(answer.body))
                head["Set-Cookie"] = f"{cookie_name(own)}={door.token}; Path=/; HttpOnly; SameSite=Strict"
                head["Content-Security-Policy"] = POLICY.format(host=request.headers["Host"], frames=FRAMES)
                head["Referrer-Policy"] = "no-referrer"
                head["X-Content-Type-Options"] = "nosniff"
                head["Cache-Control"] = "no-store"
            return answer

        wrapped.append(host)
        more["logger"] = log  # who knocks and goes away is no trace on somebody's terminal
        return plain(handler, host, asked, process_request=knock, **more)

    place.serve = serve
    try:
        with quiet():
            server = viser.ViserServer(host=HOST, port=free_port(port), verbose=False)
    finally:
        place.serve = plain
    if wrapped != [HOST] * len(wrapped) or not wrapped:
        stop(server)
        raise MissingExtra("this viser is not the one that the studio knows: pip install 'tangere[studio]'")
    for message in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):  # they would call a relay on the internet
        server._websock_server._incoming_handlers.pop(message, None)
    if port is not None and server.get_port() != port:
        stop(server)
        raise InvalidValue(f"--port: {port} is taken by another program")
    return server, door


def own_page(body: bytes, zipped: bool) -> bytes:
    """The library's page under our name, which says so where nothing can be drawn."""
    text = (gzip.decompress(body) if zipped else body).decode()
    text = re.sub("<title>[^<]*</title>", "<title>Tangere studio</title>", text, count=1)
    text = text.replace("<head>", "<head>" + _CHECK, 1)
    return gzip.compress(text.encode(), 1) if zipped else text.encode()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that viser prints reaches terminal or notebook: the command prints one line, its own."""
    console = import_module("rich").get_console()  # in a notebook it shows things past stdout
    before, console.quiet = console.quiet, True
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = before


def stop(server: Any) -> None:
    """End the server, without a word."""
    with quiet():
        server.stop()


def address(server: Any, door: Door) -> str:
    """What is opened in a browser."""
    return f"http://{HOST}:{server.get_port()}/?token={door.token}"
