/* Figures over time: drag to zoom, double click or Escape to reset, hover to read, legend to switch. */
const STYLES = ["soft", "a", "b", "c", "d", "limit", "e", "f"];
let clips = 0; /* each clipping has a name of its own */
const END = 1e150; /* as in the still drawings: beyond it differences are no numbers any more */

class TimePlot {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    this.off = new Set(data.hidden);
    this.ready = false;
    this.visible = false;
    this.dirty = true;
    this.panels = Array.from(element.querySelectorAll(".panel")); /* in the order of the data; quiet ones are drawn last */
    this.panels.sort((a, b) => a.dataset.panel - b.dataset.panel);
    this.log = false;
    const axis = element.querySelector("button.axis");
    if (axis) axis.addEventListener("click", () => {
      this.log = !this.log;
      axis.setAttribute("aria-pressed", String(this.log));
      this.draw();
    });
    for (const button of element.querySelectorAll("[data-series]")) {
      button.addEventListener("click", () => {
        const name = button.dataset.series;
        if (!this.off.delete(name)) this.off.add(name);
        button.setAttribute("aria-pressed", String(!this.off.has(name)));
        this.draw();
      });
    }
    shared.listeners.push(() => this.update());
    this.seen = new IntersectionObserver((entries) => {
      this.visible = entries[entries.length - 1].isIntersecting;
      this.update();
    }, { rootMargin: "300px" });
    this.seen.observe(element);
  }

  /* Numbers are unpacked when the figure first comes into view. */
  prepare() {
    if (this.ready) return;
    this.ready = true;
    const common = this.data.t ? decode(this.data.t) : shared.times;
    this.start = Infinity;
    this.stop = -Infinity;
    for (const panel of this.data.panels) {
      for (const series of panel.series) {
        if (!series.y) {
          series.x = series.t ? decode(series.t) : common;
          series.y = decode(series.v);
        }
        if (series.x.length) {
          this.start = Math.min(this.start, series.x[0]);
          this.stop = Math.max(this.stop, series.x[series.x.length - 1]);
        }
      }
    }
    if (!(this.stop > this.start)) {
      if (!isFinite(this.start)) this.start = 0;
      this.stop = this.start + 1;
    }
    this.panels.forEach((panel, k) => this.listen(panel, k));
  }

  update() {
    const key = shared.range ? shared.range.join() : "";
    if (!this.visible) return;
    if (!this.ready || this.key !== key || this.width !== this.element.clientWidth) this.draw();
    this.cursor();
  }

  draw() {
    this.prepare();
    this.key = shared.range ? shared.range.join() : "";
    this.width = this.element.clientWidth;
    [this.t0, this.t1] = shared.range || [this.start, this.stop];
    this.panels.forEach((element, k) => this.drawPanel(element, this.data.panels[k]));
    this.cursor();
  }

  /* Smallest and largest of what is shown of some panels, with air. */
  ends(panels) {
    let low = Infinity, high = -Infinity;
    const take = (v) => { if (isFinite(v)) { v = Math.max(-END, Math.min(END, v)); if (v < low) low = v; if (v > high) high = v; } };
    for (const panel of panels) {
      for (const s of panel.series) {
        s.from = Math.max(0, lower(s.x, this.t0) - 1);
        s.to = Math.min(s.x.length, lower(s.x, this.t1) + 1);
        if (this.off.has(s.name)) continue;
        if (STYLES[s.style] === "limit" && !this.log) { /* a limit that is raised for a moment must not flatten the curves */
          const known = Array.from(s.y.slice(s.from, s.to)).filter(isFinite).sort((a, b) => a - b);
          for (const share of [0.05, 0.95]) if (known.length) take(known[Math.floor(share * (known.length - 1))]);
          continue;
        }
        for (let i = s.from; i < s.to; i++) if (!this.log || s.y[i] > 0) take(this.log ? Math.log10(s.y[i]) : s.y[i]);
      }
      for (const level of panel.levels) if (!this.log && !this.off.has(level[0]) && level[1] !== null) take(level[1]);
    }
    if (!isFinite(low)) { low = -1; high = 1; }
    if (this.log) low = Math.max(low, high - 6); /* a single sample near zero must not flatten the rest */
    const missing = Math.max(this.log ? 1 : panels[0].min, 1e-9 * Math.max(Math.abs(low), Math.abs(high)), 1e-12) - (high - low);
    if (missing > 0) { low -= missing / 2; high += missing / 2; }
    const air = 0.06 * (high - low);
    return [low - air, high + air];
  }

  drawPanel(element, panel) {
    const box = element.querySelector(".plot");
    const tall = panel.quiet ? 84 : this.panels.length > 1 ? 172 : 280, paper = document.documentElement.classList.contains("sheet");
    const drawn = this.panelSvg(panel, Math.max(paper ? 120 : 200, box.clientWidth), paper && !panel.quiet ? 0.72 * tall : tall);
    box.replaceChildren(drawn.svg);
    element.live = drawn;
  }

  /* A panel as SVG of W x H px; the same for the screen and for what is saved. */
  panelSvg(panel, W, H) {
    const L = 46, R = 8, T = 8, B = 22;
    const shown = panel.series.filter((s) => !this.off.has(s.name));
    const levels = this.log ? [] : panel.levels.filter((l) => !this.off.has(l[0]) && l[1] !== null);
    const [low, high] = this.ends(this.data.shared ? this.data.panels : [panel]);
    const t0 = this.t0, t1 = this.t1;
    const X = (t) => L + (t - t0) / (t1 - t0) * (W - L - R);
    const size = (v) => (this.log ? Math.log10(Math.max(v, 1e-300)) : Math.max(-END, Math.min(END, v)));
    const Y = (v) => H - B - (Math.max(low - (high - low), size(v)) - low) / (high - low) * (H - T - B);
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "img" });
    make("title", {}, svg).textContent = panel.title;
    for (const [a, b, label] of this.data.bands) {
      const from = Math.max(L, X(a)), to = Math.min(W - R, X(b));
      if (to < L || from > W - R) continue;
      const rect = make("rect", { class: "band", x: from, y: T, width: Math.max(1, to - from), height: H - T - B }, svg);
      make("title", {}, rect).textContent = label;
    }
    const up = this.log ? decades(low, high) : ticks(low, high, panel.quiet ? 2 : 5), across = ticks(t0, t1, W < 420 ? 5 : 6);
    for (const v of up) {
      make("path", { class: "grid", d: `M${L} ${Y(v)}H${W - R}` }, svg);
      make("text", { class: "y", x: L - 5, y: Y(v) + 3.5 }, svg).textContent = this.log ? readable(v, 1) : tickLabel(v, up.step);
    }
    across.forEach((t, k) => {
      make("path", { class: "grid", d: `M${X(t)} ${T}V${H - B}` }, svg);
      const label = tickLabel(t, across.step) + (k === across.length - 1 ? " s" : "");
      make("text", { class: "x", x: Math.min(X(t), W - 14), y: H - 6 }, svg).textContent = label;
    });
    const clip = `clip-${this.data.id}-${this.data.panels.indexOf(panel)}-${++clips}`;
    make("rect", { x: L, y: T - 3, width: W - L - R, height: H - T - B + 6 }, make("clipPath", { id: clip }, make("defs", {}, svg)));
    const inside = make("g", { "clip-path": `url(#${clip})` }, svg);
    for (const level of levels) make("path", { class: "line limit", d: `M${L} ${Y(level[1])}H${W - R}` }, inside);
    for (const s of shown) make("path", { class: `line ${STYLES[s.style]}`, d: this.curve(s, X, Y) }, inside);
    const mark = make("g", { class: "cursor" }, svg);
    const zone = make("rect", { class: "zone", x: 0, y: T, width: 0, height: H - T - B }, svg);
    return { X, Y, L, R, W, H, T, B, mark, zone, shown, svg };
  }

  /* A path with at most four points per pixel column; gaps where a value is no number. */
  curve(s, X, Y) {
    const out = [];
    let down = false, column = NaN, first = 0, least = 0, most = 0, last = 0, open = false;
    const put = (i) => { out.push((down ? "L" : "M") + X(s.x[i]).toFixed(2) + " " + Y(s.y[i]).toFixed(2)); down = true; };
    const flush = () => {
      if (!open) return;
      for (const i of Array.from(new Set([first, least, most, last])).sort((a, b) => a - b)) put(i);
      open = false;
    };
    for (let i = s.from; i < s.to; i++) {
      if (!isFinite(s.y[i])) { flush(); down = false; continue; }
      const c = Math.floor(X(s.x[i]));
      if (open && c === column) {
        if (s.y[i] < s.y[least]) least = i;
        if (s.y[i] > s.y[most]) most = i;
        last = i;
      } else {
        flush();
        column = c; first = least = most = last = i; open = true;
      }
    }
    flush();
    if (out.length === 1) out.push("h0.01");
    return out.join("");
  }

  cursor() {
    const t = shared.cursor;
    this.panels.forEach((element, k) => {
      const live = element.live;
      if (!live) return;
      const out = element.querySelector("output");
      live.mark.replaceChildren();
      if (t === null || t < this.t0 || t > this.t1) { out.textContent = ""; return; }
      make("path", { d: `M${live.X(t)} ${live.T}V${live.H - live.B}` }, live.mark);
      const words = [`${t.toFixed(3)} s`];
      for (const s of live.shown) {
        let i = Math.min(lower(s.x, t), s.x.length - 1);
        if (i > 0 && t - s.x[i - 1] < s.x[i] - t) i--;
        if (i < 0) continue;
        let x = s.x[i], y = s.y[i];
        if (s.t && x !== t) { /* thinned: the samples around the cursor may be far away, a line joins them */
          const b = Math.min(s.x.length - 1, lower(s.x, t)), a = Math.max(0, b - 1), width = s.x[b] - s.x[a];
          x = t;
          y = width > 0 ? s.y[a] + (t - s.x[a]) / width * (s.y[b] - s.y[a]) : s.y[b];
        }
        words.push(live.shown.length > 1 ? `${s.name} ${readable(y)}` : readable(y));
        if (isFinite(y)) make("circle", { class: STYLES[s.style], r: 3, cx: live.X(x), cy: live.Y(y) }, live.mark);
      }
      out.textContent = words.join("  ·  ") + " " + this.data.panels[k].unit;
    });
  }

  listen(element) {
    const box = element.querySelector(".plot");
    const time = (event) => {
      const live = element.live, rect = box.getBoundingClientRect();
      const share = ((event.clientX - rect.left) * live.W / rect.width - live.L) / (live.W - live.L - live.R);
      return this.t0 + Math.max(0, Math.min(1, share)) * (this.t1 - this.t0);
    };
    let start = null;
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = time(event);
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      const t = time(event), live = element.live;
      shared.point(t);
      if (start === null) return;
      const a = live.X(Math.min(start, t)), b = live.X(Math.max(start, t));
      live.zone.setAttribute("x", a);
      live.zone.setAttribute("width", b - a);
    });
    const end = (event) => {
      if (start === null) return;
      const t = time(event), a = Math.min(start, t), b = Math.max(start, t), live = element.live;
      start = null;
      live.zone.setAttribute("width", 0);
      if (event.type === "pointerup" && live.X(b) - live.X(a) > 6) shared.zoom([a, b]);
    };
    box.addEventListener("pointerup", end);
    box.addEventListener("pointercancel", end);
    box.addEventListener("pointerleave", () => { if (start === null) shared.point(null); });
    box.addEventListener("dblclick", () => shared.zoom(null));
  }
}
