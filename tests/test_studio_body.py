"""The simulation of the studio in its process: it keeps time whatever others do, and lets go when nobody holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from studio_browser import until

import tangere
from tangere.errors import InvalidValue
from tangere.plants.pull import Pull
from tangere.studio.body import Body
from tangere.studio.ring import ROWS, Ring
from tangere.studio.scenery import Place
from tangere.studio.settings import CONTROLLERS, REACTIONS, WorldSettings
from tangere.studio.world import built


@pytest.fixture
def body():
    made = Body(WorldSettings())
    made.begin(lambda *_: None)
    yield made
    made.close()


def newest(ring):
    until(lambda: ring.count, "a row")
    row = ring.newest(ring.count - 1)[0][-1]
    return {name: row[columns] for name, columns in ring.fields.items()}


def force(ring):
    return float(np.linalg.norm(newest(ring)["force"]))


def hold(body, offset=0.03):
    """Pull link 5 and wait until it is felt."""
    now = newest(body.ring)
    T = tangere.robot("ur10e").link_poses(now["q"])[4]
    target = T[:3, 3] + np.array((0.0, offset, 0.0))
    body.send(Pull(5, (0.0, 0.0, 0.0), tuple(target.tolist())))
    until(lambda: force(body.ring) > 5.0, "the pull acts")


def test_nothing_that_simulates_is_loaded_beside_the_page():
    """The page is up sooner, and what the simulation needs is loaded in its own process meanwhile."""
    pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
    script = "import sys, tangere.studio.live; print(*sys.modules)"
    paths = os.pathsep.join(path for path in sys.path if path)
    told = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, check=True
    )
    loaded = told.stdout.decode().split()
    assert "tangere.studio.body" in loaded
    heavy = ("tangere.loop.run", "tangere.studio.world", "tangere.studio.physics", "tangere.apps.scenarios", "mujoco")
    assert not [name for name in loaded if name.startswith(heavy)]


def test_rows_go_round_and_the_reader_goes_on():
    ring = Ring(2)
    other = Ring(2, ring.path)
    ring.forget_file()
    for k in range(ROWS + 100):
        ring.append(np.full(ring.layout.width, float(k)))
    rows, since = other.newest(0)
    assert since == ROWS + 100
    assert rows[:, 0].tolist() == list(range(since - ROWS // 2, since))
    assert len(other.newest(since)[0]) == 0
    assert not ring.path.exists()


def test_a_row_is_of_one_moment(body):
    """Force and torque of a pull are those of the period that ended with the sample, in every row."""
    arm, link = tangere.robot("ur10e"), 5
    hold(body, 0.1)
    count = body.ring.count
    until(lambda: body.ring.count > count + 300, "some rows")
    rows, at = body.ring.newest(count)[0], body.ring.fields
    speeds = []
    for before, row in pairwise(rows):
        T = arm.link_poses(before[at["q"]])[link - 1]
        assert row[at["point"]] == pytest.approx(T[:3, 3], abs=1e-12)
        J = arm.jacobian(before[at["q"]], link=link)[:3]
        assert row[at["tau_ext"]] == pytest.approx(J.T @ row[at["force"]], abs=1e-9)
        speeds.append(float(np.linalg.norm(J @ before[at["qd"]])))
    assert max(speeds) > 0.01  # it moved: a row of two moments would be seen


def test_simulated_time_is_that_of_the_clock_while_the_studio_is_busy(body):
    """Pure Python in the studio's process takes nothing from the simulation: a period lost is lost by the machine."""
    newest(body.ring)
    end, work = time.monotonic() + 2.0, 0
    first = newest(body.ring)
    while time.monotonic() < end:
        work += sum(range(1000)) % 7
    last = newest(body.ring)
    wall, simulated = float(last["wall"][0] - first["wall"][0]), float(last["time"][0] - first["time"][0])
    rows = body.ring.newest(0)[0]
    steps = np.diff(rows[:, body.ring.fields["time"]][:, 0])
    assert steps == pytest.approx(0.002)  # none is left out
    assert wall > 1.5
    assert simulated > 0.0
    assert simulated <= wall + 0.05
    assert body.pid != os.getpid()
    if os.environ.get("TANGERE_SOAK"):  # short delays are made up for; a very busy machine has longer ones
        assert simulated >= 0.97 * wall


def test_a_silent_studio_lets_go_and_the_arm_moves_on(body):
    hold(body)
    body._done.set()  # no more signs of life
    until(lambda: force(body.ring) == 0.0, "let go")
    count = body.ring.count
    until(lambda: body.ring.count > count + 50, "it goes on")


def test_a_studio_that_is_killed_lets_go_within_a_second_and_the_arm_moves_on(tmp_path):
    script = """
import sys, time, numpy as np, tangere
from tangere.plants.pull import Pull
from tangere.studio.body import Body
from tangere.studio.ring import Ring
from tangere.studio.settings import WorldSettings
Ring.forget_file = lambda self: None
body = Body(WorldSettings())
body.begin(lambda *_: None)
print(body.ring.path, body.pid, flush=True)
body.send(Pull(5, (0.0, 0.0, 0.0), (0.0, -0.3, 0.9)))
time.sleep(60)
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    studio = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    path, pid = studio.stdout.readline().split()
    ring = Ring(6, path)
    os.unlink(path)
    until(lambda: force(ring) > 5.0, "the pull acts")
    studio.send_signal(signal.SIGKILL)
    studio.wait()
    killed = time.perf_counter()  # the same clock as that of the rows
    until(lambda: force(ring) == 0.0, "let go")
    rows = ring.newest(0)[0]
    pulled = rows[np.linalg.norm(rows[:, ring.fields["force"]], axis=1) > 0.0]
    assert float(pulled[-1, ring.fields["wall"]][0]) < killed + 1.0
    count = ring.count
    until(lambda: ring.count > count + 50, "it goes on")
    until(lambda: not os.path.exists(f"/proc/{pid}"), "and ends by itself")


def test_pause_step_slow_and_go_on(body):
    newest(body.ring)
    body.pace(0.0)

    def still():
        count = body.ring.count
        time.sleep(0.15)
        return count if body.ring.count == count else None

    count = until(still, "paused")
    body.pace(0.0, 5)
    until(lambda: body.ring.count == count + 5, "five periods")
    time.sleep(0.1)
    assert body.ring.count == count + 5
    body.pace(0.05)
    until(lambda: body.ring.count >= count + 25, "slow motion")
    rows = body.ring.newest(count + 10)[0]
    walls = rows[:, body.ring.fields["wall"]][:, 0]
    # 40 ms for 2 ms of the arm's time; one period that was late is followed by a shorter one
    assert walls[-1] - walls[0] > 0.04 * (len(walls) - 2)
    body.pace(1.0)
    until(lambda: body.ring.count > count + 300, "real time")


def test_another_world_starts_where_the_arm_is_and_home_where_it_began(body):
    start = newest(body.ring)["q"]
    hold(body, 0.2)
    until(lambda: np.abs(newest(body.ring)["q"] - start).max() > 0.02, "it gives way")
    there = newest(body.ring)["q"]
    body.rebuild(WorldSettings(controller="joint impedance"))
    until(lambda: newest(body.ring)["run"][0] == 2.0, "the second run")
    assert newest(body.ring)["q"] == pytest.approx(there, abs=0.05)
    body.rebuild(WorldSettings(), home=True)
    until(lambda: newest(body.ring)["run"][0] == 3.0, "the third run")
    assert newest(body.ring)["q"] == pytest.approx(start, abs=1e-3)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("reaction", REACTIONS)
def test_every_controller_holds_the_arm_with_every_reaction(controller, reaction):
    world = built(WorldSettings(controller=controller, reaction=reaction))
    result = tangere.run(
        world.plant, world.controller, world.observer, detector=world.detector, reaction=world.reaction,
        start=world.start, until=0.3,
    )  # fmt: skip
    assert not result.aborted
    assert result.log["q"][-1] == pytest.approx(world.start, abs=1e-3)


@pytest.mark.parametrize("scene", ["table", "wall", "hand"])
def test_things_to_touch_are_beside_the_arm_and_not_in_it(scene):
    world = built(WorldSettings(scene=scene))
    result = tangere.run(
        world.plant, world.controller, world.observer, detector=world.detector, start=world.start, until=0.5
    )
    assert not result.events
    assert np.abs(result.log["tau_ext_true"]).max() < 1e-6


def test_a_ball_falls_on_the_arm_and_is_felt():
    world = built(WorldSettings(scene="ball", reaction="float"))
    place = Place(world.plant, world.bodies)
    high = place.read()
    result = tangere.run(
        world.plant, world.controller, world.observer, detector=world.detector, reaction=world.reaction,
        start=world.start, until=2.8,
    )  # fmt: skip
    assert result.events
    assert 2.0 < result.events[0].time_s < 2.6
    assert place.read()[2] < high[2] - 0.2
    assert world.plant.period == 1e-3


def test_what_cannot_be_is_said_before_anything_moves():
    with pytest.raises(InvalidValue, match="computed torque"):
        WorldSettings(controller="magic")
    with pytest.raises(InvalidValue, match="follows no motion"):
        Body(WorldSettings(controller="hand guiding", motion="sine")).begin(lambda *_: None)
    assert WorldSettings().command() == "tangere studio"
    told = WorldSettings(controller="hand guiding", payload=2.5)
    assert told.command() == "tangere studio --controller 'hand guiding' --payload 2.5"
    longest = WorldSettings(controller="cartesian impedance", believed_payload=2.5).python()
    assert max(map(len, longest.splitlines())) <= 37  # letters that the panel shows
    scope: dict = {}
    exec(told.python().replace("until=10.0", "until=0.05"), scope)
    assert scope["result"].log.time[-1] > 0.04
