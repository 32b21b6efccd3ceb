"""More of the studio: meshes of others, a promised rate, a paper that is moved, frames of the documents, no WebGL."""

from __future__ import annotations

import asyncio
import functools
import gzip
import http.server
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from studio_browser import browser, needs_browser, until

import tangere
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.plants.pull import Load
from tangere.studio.meshes import PARTS, colour, package_meshes
from tangere.studio.settings import WorldSettings
from tangere.studio.world import built

pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
trimesh = pytest.importorskip("trimesh")
TRIANGLE = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><path d="M 20 20 L 80 20 L 50 70 Z"/></svg>'

# ---- meshes of UR's description package ----


def package(folder, arm, offsets=True, ending=".obj"):
    """A package as UR's is, whose parts are boxes around the origin of the part's own frame."""
    (folder / "meshes" / arm / "visual").mkdir(parents=True)
    (folder / "config" / arm).mkdir(parents=True)
    lines = ["mesh_files:"]
    for k, (part, (file, _)) in enumerate(PARTS.items()):
        T = np.eye(4)
        if offsets:  # the file's own frame is turned and shifted: the package says how
            T[:3, :3] = tangere.kinematics.rotation.matrix_from_rotation_vector((0.0, 0.0, np.pi / 2))
            T[:3, 3] = (0.0, 0.0, 0.01 * k)
            lines += [f"  {part}:", "    mesh_offset:", "      x: 0.0", "      y: 0", f"      z: {0.01 * k}",
                      "      roll: 0.0", "      pitch: 0.0", "      yaw: !degrees 90"]  # fmt: skip
        box = trimesh.creation.box((0.1, 0.2, 0.3))
        box.apply_transform(np.linalg.inv(T))
        box.export(folder / "meshes" / arm / "visual" / f"{file}{ending}")
    (folder / "config" / arm / "visual_parameters.yaml").write_text("\n".join(lines) + "\n")
    return folder


def test_meshes_of_the_package_stand_where_its_frames_are(tmp_path):
    """A box around each part's origin is found around the place of UR's URDF link, at any angles."""
    arm = tangere.robot("ur10e")
    bodies = package_meshes(package(tmp_path, "ur10e"), arm.model)
    assert len(bodies) == 7
    rng = np.random.default_rng(2)
    for q in rng.uniform(-np.pi, np.pi, (5, 6)):
        links = arm.link_poses(q)
        joints = links @ np.stack([np.linalg.inv(joint.T_joint_link) for joint in arm.model.joints])
        places = [np.eye(4), *joints]
        # origins of UR's links: the joint's own end along its axis (UR's URDF: shoulder at d1, wrist 1 at d4 ...)
        shift = [0.0, 0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655]
        for body, T, d in zip(bodies, places, shift, strict=True):
            (mesh,) = body.values()
            seen = mesh.vertices @ T[:3, :3].T + T[:3, 3]
            origin = T @ np.array((0.0, 0.0, d, 1.0))
            assert seen.mean(axis=0) == pytest.approx(origin[:3], abs=1e-9)
            own = (seen - origin[:3]) @ T[:3, :3]
            assert np.abs(own).max(axis=0) == pytest.approx((0.05, 0.1, 0.15), abs=1e-9)


def test_older_packages_and_stl_files_are_read_and_what_is_missing_is_said(tmp_path, capsys):
    arm = tangere.robot("ur5e")
    old = package(tmp_path / "old", "ur5e", offsets=False, ending=".stl")
    text = "offsets:\n  shoulder_offset: 0.138\n  elbow_offset: 0.007\n"
    (old / "config" / "ur5e" / "physical_parameters.yaml").write_text(text)
    visual = "mesh_files:\n  wrist_1:\n    visual_offset: -0.127\n"
    (old / "config" / "ur5e" / "visual_parameters.yaml").write_text(visual)
    bodies = package_meshes(old, arm.model)
    centres = [next(iter(body.values())).vertices.mean(axis=0)[2] for body in bodies]
    d = [0.0, *(float(joint.T_joint_link[2, 3]) for joint in arm.model.joints)]
    assert np.array(centres) - d == pytest.approx([0.0, 0.0, 0.138, 0.007, -0.127, 0.0, 0.0], abs=1e-6)
    assert colour(next(iter(bodies[0]))) == (214, 219, 225)  # an STL has none
    with pytest.raises(InvalidValue, match=r"no meshes of ur10e in .*; it has meshes of ur5e"):
        package_meshes(old, tangere.robot("ur10e").model)
    (old / "meshes" / "ur5e" / "visual" / "wrist1.stl").write_text("not a mesh")
    with pytest.raises(InvalidValue, match=r"wrist1\.stl has no triangles|wrist1\.stl: is damaged"):
        package_meshes(old, arm.model)
    (old / "meshes" / "ur5e" / "visual" / "wrist1.stl").unlink()
    with pytest.raises(InvalidValue, match="no wrist1"):
        package_meshes(old, arm.model)
    assert main(["studio", "--no-browser", "--meshes", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "there is no folder meshes in it" in said.err
    assert said.err.count("\n") == 1


def test_an_arm_with_those_meshes_is_shown_and_coloured(tmp_path):
    arm = tangere.robot("ur10e")
    shown = arm.show(browser=False, meshes=str(package(tmp_path, "ur10e")))
    try:
        there = shown.page.stage.arm
        there.paint(3, 1.0)
        assert tuple(next(iter(there.parts[3].values())).color) == (232, 146, 12)
        there.paint(3, 0.0)
        kind, part = next(iter(there.parts[3].items()))
        assert tuple(part.color) == colour(kind)
    finally:
        shown.close()


# ---- what the detector promises ----


def test_a_promised_rate_is_learned_keeps_quiet_and_feels_a_push(monkeypatch):
    monkeypatch.setattr("tangere.studio.world.HELD_STILL", 8.0)  # enough for one false alarm an hour
    monkeypatch.setattr("tangere.studio.world.MOVED", 14.0)
    many, few = (built(WorldSettings(sensors="ur10e", alarms=rate)) for rate in (60.0, 1.0))
    assert many.detector.thresholds.rate == 60.0
    assert few.detector.thresholds.rate == pytest.approx(1.0)
    assert np.all(few.detector.thresholds.table >= many.detector.thresholds.table * 0.999)
    assert few.detector.thresholds.table.sum() > 1.01 * many.detector.thresholds.table.sum()
    quiet = tangere.run(
        few.plant, few.controller, few.observer, detector=few.detector, start=few.start, until=6.0
    )
    assert not quiet.events
    hand = [Load((0.0, 20.0, 0.0, 0.0, 0.0, 0.0))]
    live = type("Live", (), {"take": lambda _, time: hand if time > 1.0 else [], "again": None})()
    pushed = tangere.run(
        many.plant, many.controller, many.observer, detector=many.detector, start=many.start, until=1.2, live=live
    )
    assert pushed.events
    assert pushed.events[0].time_s == pytest.approx(1.01, abs=0.03)
    with pytest.raises(InvalidValue, match="turn noise on"):
        built(WorldSettings(alarms=1.0))


def test_what_is_refused_goes_back_to_what_runs():
    from test_studio_change import Made

    made = Made(WorldSettings(kp=1000.0, payload=20.0))  # beyond the sliders' own ends
    try:
        page = made.page
        page.change("alarms", 10.0)
        until(lambda: any("turn noise on" in text for text in page.said), "said so")
        until(lambda: page.settings.alarms == 0.0, "the setting is as before")
        assert page.alarms.value == "no promise"
        assert "--alarms" not in page.copy.content
        assert "--kp 1000" in page.copy.content
    finally:
        made.close()


# ---- frames of the documents ----


def test_frames_are_offered_and_shown_as_the_documents_have_them():
    from tangere.model.conventions import document_frames

    shown = tangere.robot("ur10e").show(browser=False)
    try:
        learn, q = shown.page.learn, shown.page.stage.arm.q
        assert list(learn.conventions) == ["none", "DH", "document 000", "document 001", "document 002"]
        for name, document in learn.conventions.items():
            learn.frames(name)
            if name == "none":
                assert not learn._frames
                continue
            d = (0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655)
            wanted = document_frames(document, q, -0.6127, -0.57155, d) if document else learn.arm.links
            assert np.array([frame.position for frame in learn._frames]) == pytest.approx(wanted[:, :3, 3], abs=1e-9)
        learn.frames("none")
        assert not any(frame.visible for frame in learn._frames)
    finally:
        shown.close()
    shown = tangere.robot("scara").show(browser=False)
    try:
        assert list(shown.page.learn.conventions) == ["none", "DH"]
    finally:
        shown.close()


# ---- the page itself ----


def test_the_page_has_our_name_and_says_where_nothing_can_be_drawn():
    from tangere.studio.door import NO_WEBGL, own_page

    html = b"<!doctype html><html><head><title>Viser</title></head><body></body></html>"
    plain = own_page(html, False).decode()
    assert "<title>Tangere studio</title>" in plain
    assert NO_WEBGL.split("`")[0] in plain
    assert gzip.decompress(own_page(gzip.compress(html), True)).decode() == plain


def test_with_a_mouse_payload_gain_and_stop_the_tool_through_a_singularity_and_a_picture_elsewhere(tmp_path):
    """One browser for all of it: sliders, the tool dragged straight up until the arm is stretched, a picture."""
    needs_browser()
    from test_studio_change import Made

    from tangere.studio.door import address

    made = Made(WorldSettings())
    page = made.page
    try:
        with browser((1280, 620)) as open_page:
            seen = open_page(address(made.server, made.door))
            client = until(lambda: list(made.server.get_clients().values()), "a client")[0]
            client.local_storage.get_item("tangere", timeout=60.0)
            seen.page.add_style_tag(content=".mantine-Notifications-root { display: none }")
            assert seen.page.title() == "Tangere studio"
            assert seen.page.locator("#no-webgl").count() == 0
            made.rests()
            seen.page.get_by_role("tab", name="Change").click()
            seen.slide("payload [kg]", 5.0 / 12.0)
            until(lambda: 4.0 <= page.settings.payload <= 6.0, "the payload is taken")
            arm = page.stage.robot
            until(lambda: np.abs(made.now["residual"]).max() > 5.0, "the mass is felt")
            made.rests()
            more = arm.with_payload(page.settings.payload).gravity_torque(made.now["q"])
            added = more - arm.gravity_torque(made.now["q"])
            assert made.now["residual"] == pytest.approx(-added, rel=0.01, abs=0.01 * np.abs(added).max())
            bent = made.now["q"].copy()
            seen.slide("kp [1/s²]", 1.0)
            until(lambda: page.settings.kp == 400.0, "the gain is taken")
            until(lambda: np.abs(made.now["q"] - bent).max() > 1e-4, "the arm rises")
            fields = seen.page.locator("input:visible").all()
            typed = next(one for one in fields if one.input_value() == "400")  # the number beside the slider
            typed.click()
            seen.page.keyboard.press("s")  # while typing a key is a letter
            client.local_storage.get_item("tangere", timeout=60.0)  # whatever it told has come by now
            assert page.speed.value == "real time"
            seen.page.get_by_text("kp [1/s²]").click()  # no field is typed into
            seen.page.keyboard.press("s")
            until(lambda: page.speed.value == "paused", "stop by a key")
            learn = page.learn
            seen.page.get_by_role("tab", name="Learn").click()
            seen.page.get_by_text("drag the tool", exact=True).click()
            until(lambda: learn.handle is not None and len(learn.solutions) > 0, "ghosts")
            start = np.array(learn.handle.position)
            turned = tangere.kinematics.rotation.matrix_from_quaternion(np.array(learn.handle.wxyz))
            axis = np.asarray(turned)[:, 2]  # the arrow that points out of the tool, down; it is pulled up
            counts = set()
            (x, y), (u, v) = (seen.pixel(client, start + by * axis) for by in (0.15, -0.75))
            for patience in (0.3, 1.0, 3.0, 6.0):  # the page sees where the mouse is before it is pressed
                seen.page.mouse.move(x, y)
                time.sleep(patience)
                seen.page.mouse.down()
                seen.page.mouse.move(x + (u - x) / 30, y + (v - y) / 30)
                seen.page.mouse.move(x + (u - x) / 15, y + (v - y) / 15)
                time.sleep(patience)
                if np.any(np.array(learn.handle.position) != start):
                    break
                seen.page.mouse.up()
            for k in range(3, 31):
                seen.page.mouse.move(x + (u - x) * k / 30, y + (v - y) * k / 30)
                time.sleep(0.05)
                counts.add(len(learn.solutions))
                for ghost, text in zip(learn.ghosts, learn.labels, strict=True):
                    assert np.isfinite(ghost.q).all() or not text.visible
            until(lambda: "out of reach" in learn.said, "said so")
            seen.page.mouse.up()
            moved = np.array(learn.handle.position) - start
            assert moved @ axis < -0.4  # through the arm that is stretched out
            assert np.linalg.norm(np.cross(moved, axis)) < 1e-6
            assert max(counts) >= 4
            assert not any(label.visible for label in learn.labels)
            pytest.importorskip("cv2")
            file = tmp_path / "triangle.svg"
            file.write_bytes(TRIANGLE)
            seen.page.get_by_role("tab", name="Draw").click()
            seen.page.locator("input[type=file]").first.set_input_files(str(file))
            sketch = page.sketch
            until(lambda: sketch.prepared is not None and not sketch.watch.disabled, "planned")
            place = sketch.prepared.canvas.T_base_canvas.copy()
            handle = np.array(sketch.handle.position)
            assert handle == pytest.approx(place[:3, 3])
            assert [text for text in seen.errors if "preventDefault" not in text] == []
            assert seen.outside == []
        # the handle as the page reports it: moved by 60 mm, then let go
        there = place[:3, 3] + place[:3, :3] @ np.array((0.06, 0.0, 0.0))
        sketch.handle.position = there
        event = type("Moved", (), {"phase": "end", "client_id": 1})()
        asyncio.run(sketch._moved(event))

        def planned_there():
            now = sketch.prepared.canvas.T_base_canvas[:3, 3]
            return not sketch.watch.disabled and np.allclose(now, there, atol=1e-5)

        until(planned_there, "planned there")
        sketch.handle.position = (5.0, 0.0, 0.0)
        asyncio.run(sketch._moved(event))
        until(lambda: sketch.watch.disabled and "planning" not in sketch.text.content, "out of reach is said")
        assert "triangle.svg" not in sketch.text.content or "cannot be read" not in sketch.text.content
    finally:
        made.close()


def test_a_frame_in_a_page_of_another_site_is_let_in(tmp_path):
    """As a notebook at localhost has it: no cookie of 127.0.0.1 is sent from there."""
    needs_browser()
    shown = tangere.robot("ur3e").show(browser=False)
    (tmp_path / "notebook.html").write_text(f"<title>notebook</title>{shown._repr_html_()}")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path))
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        with browser((800, 600)) as open_page:
            open_page(f"http://localhost:{other.server_port}/notebook.html", wait="iframe")
            client = until(lambda: list(shown._server.get_clients().values()), "the frame's page")[0]
            until(lambda: client.camera.update_timestamp > 0.0, "it tells where its camera is")
    finally:
        other.shutdown()
        shown.close()


def test_settings_beyond_a_sliders_end_are_kept():
    settings = replace(WorldSettings(), alarms=5.0, sensors="ur10e")
    assert settings.command() == "tangere studio --sensors ur10e --alarms 5"
