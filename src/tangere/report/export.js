/* Every figure as a file: SVG and PDF 85 or 178 mm wide (a column, a page of a paper), its numbers as csv. No library. */
const MM = 96 / 25.4, WIDTHS = [85, 178]; /* px of a millimetre: type of 11 px is then 8.3 points */
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
              "stroke-linejoin", "opacity", "font-size", "font-weight", "font-style", "text-anchor"];

/* Save text or bytes under a name. */
function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/* A copy of a drawing that needs no style sheet; `larger`: how much larger its type shall be. */
function alone(svg, larger) {
  const copy = svg.cloneNode(true), from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
  from.forEach((element, k) => {
    if (["title", "desc", "defs", "clipPath", "g"].includes(element.tagName)) return;
    const style = getComputedStyle(element);
    for (const name of KEPT) {
      let value = style.getPropertyValue(name);
      if (name === "font-size") value = `${parseFloat(value) * larger}px`;
      if (value && value !== "normal") to[k].setAttribute(name, value);
    }
    if (element.tagName === "text") to[k].setAttribute("font-family", "Helvetica, Arial, sans-serif");
  });
  for (const element of copy.querySelectorAll(".cursor, .zone")) element.remove();
  copy.removeAttribute("class");
  return copy;
}

/* A figure as one SVG `mm` wide; light colours, since a paper is white. */
function composed(figure, plot, mm) {
  const W = Math.round(mm * MM), svg = make("svg", { xmlns: SVG, role: "img" });
  let y = 0;
  const place = (part, x, top) => { const g = make("g", { transform: `translate(${x} ${top})` }, svg); g.append(...part.childNodes); };
  const hidden = document.createElement("div"); /* styles are computed for what is in the page only */
  hidden.className = "paper";
  document.body.append(hidden);
  const styled = (part, larger) => { hidden.append(part); const copy = alone(part, larger || 1); part.remove(); return copy; };
  if (plot) {
    plot.draw();
    let x = 46;
    const legend = make("svg", {});
    const named = Array.from(figure.querySelectorAll(".legend [data-series]")).filter((b) => b.getAttribute("aria-pressed") === "true");
    if (named.length > 1) {
      y = 16;
      for (const button of named) {
        const style = button.querySelector(".key").className.replace("key ", ""), name = button.dataset.series;
        const wide = 30 + 6.2 * name.length;
        if (x > 46 && x + wide > W) { x = 46; y += 15; }
        make("path", { class: `line ${style}`, d: `M${x} ${y - 7}h18` }, legend);
        make("text", { x: x + 23, y: y - 3 }, legend).textContent = name;
        x += wide;
      }
      place(styled(legend), 0, 0);
    }
    const across = plot.data.panels.length > 1 && mm > 120 ? 2 : 1, each = Math.floor((W - 12 * (across - 1)) / across);
    const order = plot.data.panels.slice().sort((a, b) => Boolean(a.quiet) - Boolean(b.quiet));
    for (let k = 0; k < order.length; k += across) {
      const row = order.slice(k, k + across), high = row.every((p) => p.quiet) ? 76 : plot.data.panels.length > 1 ? 118 : 170;
      row.forEach((panel, i) => {
        const head = make("svg", {});
        make("text", { class: "unit", x: 46, y: 11 }, head).textContent = `${panel.title} [${panel.unit}]`;
        place(styled(head), i * (each + 12), y);
        place(styled(plot.panelSvg(panel, each, high).svg), i * (each + 12), y + 14);
      });
      y += high + 20;
    }
  } else {
    let first = true;
    for (const still of figure.querySelectorAll("svg")) {
      const box = still.viewBox.baseVal;
      if (!box || !box.width || getComputedStyle(still).display === "none") continue;
      const scale = W / box.width, copy = styled(still.cloneNode(true), Math.min(2.2, Math.max(1, 0.75 / scale)));
      const g = make("g", { transform: `translate(0 ${y + (first ? 0 : 8)}) scale(${scale})` }, svg);
      g.append(...copy.childNodes);
      y += scale * box.height + (first ? 0 : 8);
      first = false;
    }
  }
  hidden.remove();
  const H = Math.ceil(y);
  svg.setAttribute("width", `${mm}mm`);
  svg.setAttribute("height", `${(H / MM).toFixed(2)}mm`);
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  const caption = figure.querySelector("figcaption");
  const words = caption ? Array.from(caption.childNodes).filter((n) => n.nodeType === 3).map((n) => n.textContent).join(" ").trim() : "";
  const about = make("desc", {});
  about.textContent = `${words} ${figure.querySelector("a.again") ? figure.querySelector("a.again").title : ""}`.trim();
  svg.prepend(about);
  return { svg, W, H, words };
}

/* The numbers of a figure over time: one row for each time at which a curve has a sample, empty where it has none. */
function table(plot) {
  plot.prepare();
  const head = ["time [s]"], columns = [], times = new Set();
  for (const panel of plot.data.panels) for (const s of panel.series) {
    head.push(`${panel.title}: ${s.name} [${panel.unit}]`);
    const at = new Map();
    for (let i = 0; i < s.x.length; i++) { const t = Number(s.x[i].toPrecision(7)); at.set(t, s.y[i]); times.add(t); }
    columns.push(at);
  }
  const cell = (v) => (v === undefined || !isFinite(v) ? "" : String(Number(v.toPrecision(7))));
  const quoted = head.map((name) => (/[",\n]/.test(name) ? `"${name.replace(/"/g, '""')}"` : name));
  const rows = Array.from(times).sort((a, b) => a - b).map((t) => [cell(t), ...columns.map((at) => cell(at.get(t)))].join(","));
  return [quoted.join(","), ...rows].join("\r\n") + "\r\n";
}

/* The paths that a scene shows, in the base frame. */
function sceneTable(scene) {
  const rows = ["path,x [m],y [m],z [m]"];
  for (const [style, path] of scene.paths) for (let i = 0; i < path.length; i += 3) {
    rows.push([style === "soft" ? "reference" : "real", ...Array.from(path.slice(i, i + 3), (v) => (isFinite(v) ? Number(v.toPrecision(7)) : ""))].join(","));
  }
  return rows.join("\r\n") + "\r\n";
}

/* Buttons beside the link of every figure that has a drawing. */
function offer(figure, plot, scene) {
  const tools = figure.querySelector(".tools");
  if (!tools || !figure.querySelector("svg")) return;
  const name = figure.id || (figure.closest("section") || {}).id || "figure";
  const button = (words, title, run) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.title = title;
    made.addEventListener("click", run);
    tools.append(made);
  };
  for (const mm of WIDTHS) {
    const wide = mm === 85 ? "one column" : "two columns";
    button(`SVG ${mm}`, `Save as SVG, ${mm} mm wide (${wide})`, () => {
      save(`${name}-${mm}mm.svg`, new XMLSerializer().serializeToString(composed(figure, plot, mm).svg), "image/svg+xml");
    });
    button(`PDF ${mm}`, `Save as PDF, ${mm} mm wide (${wide})`, () => {
      const drawn = composed(figure, plot, mm);
      save(`${name}-${mm}mm.pdf`, pdf(drawn.svg, drawn.W, drawn.H, drawn.words), "application/pdf");
    });
  }
  const numbers = plot ? () => table(plot) : scene && scene.paths.length ? () => sceneTable(scene) : stillTable(figure);
  if (numbers) button("csv", "Save the numbers as csv", () => save(`${name}.csv`, numbers(), "text/csv"));
}

/* The numbers of a still drawing: those that it brings along, or what its marks say themselves. */
function stillTable(figure) {
  const told = figure.dataset.csv;
  if (told) return () => told;
  const words = Array.from(figure.querySelectorAll("svg * > title"), (title) => title.textContent).filter((text) => /\d/.test(text));
  return words.length ? () => ["mark", ...words.map((text) => `"${text.replace(/"/g, '""')}"`)].join("\r\n") + "\r\n" : null;
}
