"""The hand of the page: grab a point of a link with the mouse, pull, and let go when nobody holds the mouse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tangere.plants.pull import FORCE_MAX, STIFFNESS, Pull, Release
from tangere.studio.stage import Arm

ASK = 0.25  # [s] between two questions to the page that holds the arm
ANSWER = 1.0  # [s] within which it answers: a page that draws answers within 0.2 s


class Grab:
    """Mouse drags on the links of an arm as pulls of the simulation. One page holds the arm at a time.

    A mouse that rests sends nothing, and a frozen page still answers the pings of its connection: the page that holds
    the arm is therefore asked, through its own queue of messages, whether it lives. No answer: the arm is let go.
    """

    def __init__(self, arm: Arm, send: Callable[[Any], None], tell: Callable[[str], None]) -> None:
        self.arm, self._send, self._tell = arm, send, tell
        self.stiffness, self.force_max = STIFFNESS, FORCE_MAX
        self.patience = ANSWER
        self.owner: int | None = None
        self.pull: Pull | None = None
        self._lock = threading.Lock()
        for i, parts in enumerate(arm.parts):
            for part in parts.values() if i else ():
                part.on_drag("left")(self._dragged(i))

    def _dragged(self, link: int) -> Any:
        async def dragged(event: Any) -> None:  # a coroutine: functions may be called out of order
            if event.phase == "start":
                self._take(link, event)
            elif event.client_id == self.owner:
                if event.phase == "end":
                    self.release()
                elif self.pull is not None:
                    self._pull(self.pull.link, self.pull.point, event.end_position)

        return dragged

    def _take(self, link: int, event: Any) -> None:
        with self._lock:
            if self.owner not in (None, event.client_id):
                self._tell("another page holds the arm")
                return
            fresh, self.owner = self.owner is None, event.client_id  # not fresh: the end of its pull before was lost
        point = tuple(self.arm.in_link(link, event.start_position).tolist())
        self._pull(link, point, event.end_position)
        if fresh:
            threading.Thread(target=self._watch, args=(event.client,), daemon=True).start()

    def _pull(self, link: int, point: Any, target: Any) -> None:
        x, y, z = map(float, target)
        self.pull = Pull(link, point, (x, y, z), stiffness=self.stiffness, force_max=self.force_max)
        self._send(self.pull)

    def release(self, why: str = "") -> None:
        """Let go, whoever holds it."""
        with self._lock:
            held, self.owner, self.pull = self.owner is not None, None, None
        if held:
            self._send(Release(why))
            if why:
                self._tell(f"let go: {why}")

    def gone(self, client_id: int) -> None:
        """A page was closed."""
        if client_id == self.owner:
            self.release("the page was closed")

    def _watch(self, client: Any) -> None:
        """Ask the page that holds the arm whether it lives, for as long as it does."""
        pause = threading.Event()
        while self.owner == client.client_id:
            try:
                client.local_storage.get_item("tangere", timeout=self.patience)
            except TimeoutError:
                if self.owner == client.client_id:
                    self.release(f"the page did not answer for {self.patience:g} s")
                return
            except RuntimeError:  # it was closed, or keeps nothing: the first is told of elsewhere
                if client.client_id not in client._viser_server.get_clients():
                    self.gone(client.client_id)
                    return
            pause.wait(ASK)
