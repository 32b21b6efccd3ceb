/* The arm in space: drag to turn, slider or the cursor of any plot to move. The same projection as the still drawing. */
const KINDS = ["tube", "joint", "cap", "pen"];
/* Where a frame's name may stand, as in the still drawing. */
const PLACES = [[-7, 14], [-12, -8], [24, 18], [-40, 4], [44, -4], [-34, 34], [34, 38], [-38, -30], [36, -34], [0, 52], [-66, 14], [66, 14]];

/* Outline, visible end and highlight of a cylinder (or capsule) from a to b, as in the still drawing. */
function tube(a, b, r, towards, ends) {
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
  const u = length > 1e-6 ? [(b[0] - a[0]) / length, (b[1] - a[1]) / length] : [1, 0];
  const side = [-r * u[1], r * u[0]];
  const at = (p, f) => `${(p[0] + f * side[0]).toFixed(1)} ${(p[1] + f * side[1]).toFixed(1)}`;
  const minor = ends ? r : r * Math.abs(towards);
  const arc = `A${r.toFixed(1)} ${minor.toFixed(1)} ${(Math.atan2(side[1], side[0]) * 180 / Math.PI).toFixed(1)} 0 0 `;
  const near = towards > 0 ? b : a, light = side[1] > 0 ? -0.35 : 0.35;
  return {
    body: `M${at(a, 1)}L${at(b, 1)}${arc}${at(b, -1)}L${at(a, -1)}${arc}${at(a, 1)}Z`,
    face: ends ? "" : `M${at(near, 1)}${arc}${at(near, -1)}${arc}${at(near, 1)}Z`,
    shine: `M${at(a, light)}L${at(b, light)}`,
  };
}

/* Farther tubes first; two that overlap are compared where they are nearest to each other in the drawing. */
function paintingOrder(pieces) {
  const samples = pieces.map(({ p, q }) => [0, 0.25, 0.5, 0.75, 1].map((s) => [0, 1, 2].map((i) => p[i] + s * (q[i] - p[i]))));
  const behind = pieces.map(() => new Set());
  for (let i = 0; i < pieces.length; i++) {
    for (let j = i + 1; j < pieces.length; j++) {
      let gap = Infinity, front = 0;
      for (const a of samples[i]) for (const b of samples[j]) {
        const g = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (g < gap) { gap = g; front = a[2] - b[2]; }
      }
      if (gap < pieces[i].r + pieces[j].r + 0.1 * pieces[i].scale) behind[front > 0 ? i : j].add(front > 0 ? j : i);
    }
  }
  const left = new Set(pieces.keys()), order = [];
  while (left.size) {
    let best = -1, free = false;
    for (const k of left) {
      const clear = !Array.from(behind[k]).some((b) => left.has(b));
      if (best < 0 || (clear && !free) || (clear === free && samples[k][2][2] < samples[best][2][2])) { best = k; free = clear; }
    }
    order.push(best);
    left.delete(best);
  }
  return order;
}

class Scene {
  constructor(element, data) {
    this.data = data;
    this.stage = element.querySelector(".stage");
    this.player = element.querySelector(".player");
    this.times = decode(data.times);
    this.points = decode(data.points);
    this.triads = decode(data.triads);
    this.things = (data.things || []).map((one) => ({ name: one.name, faces: decode(one.faces), balls: decode(one.balls) }));
    this.forces = data.forces ? decode(data.forces) : null;
    this.paths = data.paths.map(([style, path]) => [style, decode(path)]);
    this.azimuth = data.azimuth;
    this.elevation = data.elevation;
    this.pose = data.first || 0;
    this.svg = make("svg", { viewBox: "0 0 640 480", role: "img" });
    this.stage.replaceChildren(this.svg);
    this.stage.classList.add("live");
    let from = null;
    this.stage.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
      this.stage.setPointerCapture(event.pointerId);
    });
    this.stage.addEventListener("pointermove", (event) => {
      if (!from) return;
      this.azimuth -= (event.clientX - from[0]) * 0.01;
      this.elevation = Math.max(-0.2, Math.min(1.57, this.elevation + (event.clientY - from[1]) * 0.008));
      from = [event.clientX, event.clientY];
      this.draw();
    });
    for (const name of ["pointerup", "pointercancel"]) this.stage.addEventListener(name, () => { from = null; });
    this.stage.addEventListener("dblclick", () => {
      this.azimuth = data.azimuth;
      this.elevation = data.elevation;
      this.draw();
    });
    if (this.player && this.times.length > 1) this.play();
    this.draw();
  }

  play() {
    const button = this.player.querySelector("button"), slider = this.player.querySelector("input");
    const output = this.player.querySelector("output");
    const show = (pose) => {
      this.pose = pose;
      slider.value = pose;
      output.textContent = `${this.times[pose].toFixed(2)} s`;
      this.draw();
    };
    let running = false, began = 0;
    const step = (now) => {
      if (!running) return;
      const t = this.times[0] + (now - began) / 1000;
      if (t > this.times[this.times.length - 1]) { began = now; }
      show(Math.min(this.times.length - 1, lower(this.times, Math.max(this.times[0], t))));
      shared.point(this.times[this.pose]);
      requestAnimationFrame(step);
    };
    button.addEventListener("click", () => {
      running = !running;
      button.textContent = running ? "Pause" : "Play";
      began = performance.now() - (this.times[this.pose] - this.times[0]) * 1000;
      if (running) requestAnimationFrame(step);
    });
    slider.addEventListener("input", () => {
      began = performance.now() - (this.times[+slider.value] - this.times[0]) * 1000;
      show(+slider.value);
      shared.point(this.times[this.pose]);
    });
    shared.listeners.push(() => {
      if (running || shared.cursor === null) return;
      const pose = Math.min(this.times.length - 1, lower(this.times, shared.cursor));
      if (pose !== this.pose) show(pose);
    });
    this.player.hidden = false;
    show(this.pose);
  }

  draw() {
    const d = this.data, scale = 480 / (2 * d.radius) * 1.12;
    const ca = Math.cos(this.azimuth), sa = Math.sin(this.azimuth);
    const ce = Math.cos(this.elevation), se = Math.sin(this.elevation);
    const flat = (values, i) => {
      const x = values[i] - d.centre[0], y = values[i + 1] - d.centre[1], z = values[i + 2] - d.centre[2];
      return [320 + scale * (-sa * x + ca * y), 240 - scale * (-ca * se * x - sa * se * y + ce * z),
              ca * ce * x + sa * ce * y + se * z];
    };
    const at = (p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
    const line = (a, b) => `M${at(a)}L${at(b)}`;
    const parts = document.createDocumentFragment();
    const cells = Math.max(2, Math.ceil(0.75 * d.radius / d.grid)), reach = cells * d.grid;
    let floor = "";
    for (let k = -cells; k <= cells; k++) {
      const v = k * d.grid;
      floor += line(flat([v, -reach, 0], 0), flat([v, reach, 0], 0)) + line(flat([-reach, v, 0], 0), flat([reach, v, 0], 0));
    }
    make("path", { class: "floor", d: floor }, parts);
    const base = this.pose * d.tubes.length * 6;
    const pieces = d.tubes.map(([radius, kind, ends], k) => {
      const p = flat(this.points, base + 6 * k), q = flat(this.points, base + 6 * k + 3);
      const flatLength = Math.hypot(q[0] - p[0], q[1] - p[1]), deep = (q[2] - p[2]) * scale;
      const towards = deep / Math.max(1e-9, Math.hypot(flatLength, deep));
      return { p, q, scale, kind: KINDS[kind], r: scale * radius, ...tube(p, q, scale * radius, towards, ends) };
    });
    const triads = this.pose * d.names.length * 12, tool = flat(this.triads, triads + 12 * (d.names.length - 1));
    const behind = this.things.filter((one) => !(this.depth(one, flat) > tool[2]));
    for (const one of behind) this.thing(one, flat, scale, parts);
    for (const k of paintingOrder(pieces)) {
      const piece = pieces[k];
      make("path", { class: `solid ${piece.kind}`, d: piece.body }, parts);
      make("path", { class: "shine", d: piece.shine, "stroke-width": 0.5 * piece.r }, parts);
      if (piece.face) make("path", { class: `face ${piece.kind}`, d: piece.face }, parts);
    }
    for (const one of this.things) if (!behind.includes(one)) this.thing(one, flat, scale, parts);
    for (const [style, path] of this.paths) {
      let text = "";
      for (let i = 0; i < path.length; i += 3) {
        const p = flat(path, i);
        if (isFinite(p[0] + p[1])) text += (text ? "L" : "M") + at(p);
      }
      make("path", { class: `line ${style}`, d: text }, parts);
    }
    this.frames(flat, triads, parts);
    if (this.forces && d.most > 0) this.force(flat, triads, parts);
    this.svg.replaceChildren(parts);
  }

  /* How near the middle of a thing is to the eye. */
  depth(one, flat) {
    let sum = 0, count = 0;
    for (let i = 0; i < one.faces.length; i += 3) { sum += flat(one.faces, i)[2]; count++; }
    for (let i = 0; i < one.balls.length; i += 4) { sum += 2 * flat(one.balls, i)[2]; count += 2; }
    return sum / count;
  }

  /* A wall, a hand, a ball, a sheet: the faces that look to the eye, and the name. */
  thing(one, flat, scale, parts) {
    const corners = [];
    for (let i = 0; i < one.faces.length; i += 12) {
      const p = [0, 3, 6, 9].map((k) => flat(one.faces, i + k));
      corners.push(...p);
      const turn = (p[1][0] - p[0][0]) * (p[2][1] - p[1][1]) - (p[1][1] - p[0][1]) * (p[2][0] - p[1][0]);
      if (turn < 0) make("path", { class: "thing", d: "M" + p.map((q) => `${q[0].toFixed(1)} ${q[1].toFixed(1)}`).join("L") + "Z" }, parts);
    }
    for (let i = 0; i < one.balls.length; i += 4) {
      const p = flat(one.balls, i), r = scale * one.balls[i + 3];
      corners.push([p[0] + r, p[1]]);
      make("circle", { class: "thing", cx: p[0].toFixed(1), cy: p[1].toFixed(1), r: r.toFixed(1) }, parts);
    }
    const most = corners.reduce((a, b) => (b[0] > a[0] ? b : a));
    make("text", { class: "thing", x: (most[0] + 7).toFixed(1), y: (most[1] + 4).toFixed(1) }, parts).textContent = one.name;
  }

  /* Triads with letters where there is room, and names that stand apart, tied to their origins. */
  frames(flat, start, parts) {
    const letters = [], placed = [], far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]), names = this.data.names;
    const origins = names.map((_, k) => flat(this.triads, start + 12 * k));
    names.forEach((_, k) => ["x", "y", "z"].forEach((axis, j) => {
      const o = origins[k], e = flat(this.triads, start + 12 * k + 3 * (j + 1));
      make("path", { class: `axis ${axis}`, d: `M${o[0].toFixed(1)} ${o[1].toFixed(1)}L${e[0].toFixed(1)} ${e[1].toFixed(1)}` }, parts);
      const tip = [o[0] + 1.18 * (e[0] - o[0]), o[1] + 1.18 * (e[1] - o[1])];
      if (letters.some((other) => far(tip, other) <= 14)) return;
      letters.push(tip);
      make("text", { class: `axis ${axis}`, x: tip[0], y: tip[1] + 3 }, parts).textContent = axis;
    }));
    names.forEach((name, k) => {
      const o = origins[k], clear = (p) => placed.every((q) => Math.abs(p[0] - q[0]) > 34 || Math.abs(p[1] - q[1]) > 15)
        && letters.every((q) => far([p[0] - 6, p[1] - 4], q) > 12);
      const spots = PLACES.map((step) => [o[0] + step[0], o[1] + step[1]]);
      const at = spots.find(clear) || spots[0];
      placed.push(at);
      if (far(at, o) > 28) make("path", { class: "leader", d: `M${o[0]} ${o[1]}L${at[0] + 6} ${at[1] - 4}` }, parts);
      make("text", { class: "frame", x: at[0], y: at[1] }, parts).textContent = name;
    });
  }

  /* The force on the tool: an arrow that ends there, with its size. */
  force(flat, triads, parts) {
    const d = this.data, f = this.forces.slice(3 * this.pose, 3 * this.pose + 3), size = Math.hypot(...f);
    if (!(size > 0.02 * d.most)) return;
    const at = triads + 12 * (d.names.length - 1), long = (0.08 + 0.22 * size / d.most) * d.radius / size;
    const tip = flat(this.triads, at), start = flat([0, 1, 2].map((i) => this.triads[at + i] - long * f[i]), 0);
    const length = Math.hypot(tip[0] - start[0], tip[1] - start[1]);
    if (!(length > 1)) return;
    const u = [(tip[0] - start[0]) / length, (tip[1] - start[1]) / length], back = Math.min(14, 0.6 * length);
    const neck = [tip[0] - back * u[0], tip[1] - back * u[1]], p = (q) => `${q[0].toFixed(1)} ${q[1].toFixed(1)}`;
    make("path", { class: "force", d: `M${p(start)}L${p(neck)}` }, parts);
    const side = (s) => [neck[0] - s * u[1], neck[1] + s * u[0]];
    make("path", { class: "force tip", d: `M${p(tip)}L${p(side(8))}L${p(side(-8))}Z` }, parts);
    make("text", { class: "force", x: start[0] - 12 * u[0], y: start[1] - 12 * u[1] + 4 }, parts).textContent = `${Number(size.toPrecision(3))} N`;
  }
}
