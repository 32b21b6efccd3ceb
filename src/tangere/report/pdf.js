/* A drawing as a PDF of one page: paths, rectangles, circles and words in Helvetica, all as vectors. */

/* "rgb(1, 2, 3)" or "rgba(1, 2, 3, 0.5)" as [r, g, b, a] from 0 to 1; null for none. */
function colourOf(text) {
  const found = /rgba?\(([^)]*)\)/.exec(text || "");
  const short = /^#([0-9a-f]{6})$/i.exec(text || "");
  if (short) return [0, 2, 4].map((k) => parseInt(short[1].slice(k, k + 2), 16) / 255).concat(1);
  if (!found) return text === "black" ? [0, 0, 0, 1] : null;
  const v = found[1].split(/[\s,/]+/).map(Number);
  return [v[0] / 255, v[1] / 255, v[2] / 255, v.length > 3 ? v[3] : 1];
}

/* An SVG path of M L H V h v A Z as operators of PDF; arcs become curves. */
function pathOf(d) {
  const out = [], f = (v) => (Math.round(v * 1000) / 1000).toString();
  let x = 0, y = 0, sx = 0, sy = 0;
  for (const [, letter, rest] of (d || "").matchAll(/([MLHVhvAZz])([^MLHVhvAZz]*)/g)) {
    const v = (rest.match(/-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi) || []).map(Number);
    if (letter === "Z" || letter === "z") { out.push("h"); x = sx; y = sy; continue; }
    if (letter === "A") {
      for (let i = 0; i + 6 < v.length; i += 7) {
        for (const c of arcs(x, y, v[i], v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5], v[i + 6])) out.push(`${c.map(f).join(" ")} c`);
        x = v[i + 5]; y = v[i + 6];
      }
      continue;
    }
    const step = letter === "M" || letter === "L" ? 2 : 1;
    for (let i = 0; i < v.length; i += step) {
      if (step === 2) { x = v[i]; y = v[i + 1]; }
      else if (letter === "H") x = v[i];
      else if (letter === "V") y = v[i];
      else if (letter === "h") x += v[i];
      else y += v[i];
      const move = letter === "M" && i === 0;
      if (move) { sx = x; sy = y; }
      out.push(`${f(x)} ${f(y)} ${move ? "m" : "l"}`);
    }
  }
  return out.join("\n");
}

/* An elliptic arc as cubic curves (SVG 1.1, appendix F.6). */
function arcs(x1, y1, rx, ry, turn, large, sweep, x2, y2) {
  rx = Math.abs(rx); ry = Math.abs(ry);
  if (rx < 1e-6 || ry < 1e-6 || (x1 === x2 && y1 === y2)) return [[x1, y1, x2, y2, x2, y2]];
  const a = turn * Math.PI / 180, ca = Math.cos(a), sa = Math.sin(a);
  const u = (ca * (x1 - x2) + sa * (y1 - y2)) / 2, w = (-sa * (x1 - x2) + ca * (y1 - y2)) / 2;
  const grow = Math.sqrt(Math.max(1, (u / rx) ** 2 + (w / ry) ** 2));
  rx *= grow; ry *= grow;
  const below = (rx * w) ** 2 + (ry * u) ** 2;
  const s = (large === sweep ? -1 : 1) * Math.sqrt(Math.max(0, ((rx * ry) ** 2 - below) / below));
  const cu = s * rx * w / ry, cw = -s * ry * u / rx;
  const cx = ca * cu - sa * cw + (x1 + x2) / 2, cy = sa * cu + ca * cw + (y1 + y2) / 2;
  const start = Math.atan2((w - cw) / ry, (u - cu) / rx);
  let span = Math.atan2((-w - cw) / ry, (-u - cu) / rx) - start;
  if (sweep && span < 0) span += 2 * Math.PI;
  if (!sweep && span > 0) span -= 2 * Math.PI;
  const count = Math.ceil(Math.abs(span) / (Math.PI / 2) - 1e-9), out = [];
  const at = (t) => [cx + rx * Math.cos(t) * ca - ry * Math.sin(t) * sa, cy + rx * Math.cos(t) * sa + ry * Math.sin(t) * ca];
  const slope = (t) => [-rx * Math.sin(t) * ca - ry * Math.cos(t) * sa, -rx * Math.sin(t) * sa + ry * Math.cos(t) * ca];
  for (let k = 0; k < count; k++) {
    const t0 = start + span * k / count, t1 = start + span * (k + 1) / count, h = 4 / 3 * Math.tan((t1 - t0) / 4);
    const p = at(t0), q = at(t1), dp = slope(t0), dq = slope(t1);
    out.push([p[0] + h * dp[0], p[1] + h * dp[1], q[0] - h * dq[0], q[1] - h * dq[1], q[0], q[1]]);
  }
  return out;
}

/* Letters of WinAnsi that Unicode has elsewhere, and Greek ones of the font Symbol. */
const ANSI = { "−": 0x96, "–": 0x96, "…": 0x85, "’": 0x92, "“": 0x93, "”": 0x94, "•": 0x95, "—": 0x97, "€": 0x80 };
const GREEK = { "α": "a", "β": "b", "γ": "g", "δ": "d", "θ": "q", "λ": "l", "μ": "m", "σ": "s", "τ": "t", "ω": "w", "π": "p",
                "Δ": "D", "Σ": "S", "→": "\xae", "≤": "\xa3", "≥": "\xb3", "∞": "\xa5" };

/* A text as runs of one font: [font, bytes as text]; a dot above is put where it belongs by hand. */
function runs(text, bold) {
  const out = [];
  for (const letter of text.normalize("NFC")) {
    const code = ANSI[letter] || letter.codePointAt(0), greek = GREEK[letter];
    const dots = { "\u0307": ".", "\u0308": ".." }[letter];
    const font = dots ? "dots" : greek ? "F3" : bold ? "F2" : "F1";
    const written = dots || greek || (code < 256 ? String.fromCharCode(code) : "?");
    const last = out[out.length - 1];
    if (last && last[0] === font && !dots) last[1] += written; else out.push([font, written]);
  }
  return out;
}

/* A PDF (bytes) of a drawing W x H px whose elements carry their own style, scaled to points. */
function pdf(svg, W, H, caption) {
  const k = 72 / 96, states = new Map(), body = [`${k} 0 0 ${-k} 0 ${(H * k).toFixed(2)} cm`], f = (v) => (Math.round(v * 1000) / 1000).toString();
  const measure = document.createElement("canvas").getContext("2d");
  const state = (fill, stroke) => {
    const key = `${fill.toFixed(3)} ${stroke.toFixed(3)}`;
    if (!states.has(key)) states.set(key, `G${states.size}`);
    return states.get(key);
  };
  const escape = (text) => text.replace(/[\\()]/g, "\\$&");
  const number = (element, name, other) => { const v = parseFloat(element.getAttribute(name)); return isFinite(v) ? v : other; };
  function draw(element) {
    const name = element.tagName;
    if (["title", "desc", "defs", "clipPath", "style"].includes(name)) return;
    if (name === "g" || name === "svg") {
      body.push("q");
      for (const [, kind, values] of (element.getAttribute("transform") || "").matchAll(/(translate|scale)\(([^)]*)\)/g)) {
        const v = values.split(/[\s,]+/).map(Number);
        body.push(kind === "scale" ? `${f(v[0])} 0 0 ${f(v[1] || v[0])} 0 0 cm` : `1 0 0 1 ${f(v[0])} ${f(v[1] || 0)} cm`);
      }
      const clip = /url\("?#([^")]*)"?\)/.exec(element.getAttribute("clip-path") || "");
      const rect = clip && svg.querySelector(`[id="${clip[1]}"] rect`);
      if (rect) body.push(`${["x", "y", "width", "height"].map((n) => f(number(rect, n, 0))).join(" ")} re W n`);
      for (const child of element.children) draw(child);
      body.push("Q");
      return;
    }
    const opacity = number(element, "opacity", 1), fill = colourOf(element.getAttribute("fill")), stroke = colourOf(element.getAttribute("stroke"));
    const alpha = (c, n) => (c ? c[3] * opacity * number(element, n, 1) : 1);
    body.push("q", `/${state(alpha(fill, "fill-opacity"), alpha(stroke, "stroke-opacity"))} gs`);
    if (fill) body.push(`${fill.slice(0, 3).map(f).join(" ")} rg`);
    if (stroke) body.push(`${stroke.slice(0, 3).map(f).join(" ")} RG`, `${f(number(element, "stroke-width", 1))} w`);
    const dashes = (element.getAttribute("stroke-dasharray") || "").match(/[\d.]+/g);
    if (dashes) body.push(`[${dashes.join(" ")}] 0 d`);
    body.push(`${{ round: 1, square: 2 }[element.getAttribute("stroke-linecap")] || 0} J ${{ round: 1, bevel: 2 }[element.getAttribute("stroke-linejoin")] || 0} j`);
    if (name === "text") {
      const size = number(element, "font-size", 11), bold = number(element, "font-weight", 400) >= 550, text = element.textContent;
      measure.font = `${bold ? "bold " : ""}${size}px Helvetica, Arial, "Liberation Sans", sans-serif`;
      const wide = (t) => measure.measureText(t).width, anchor = element.getAttribute("text-anchor");
      let x = number(element, "x", 0) - (anchor === "end" ? wide(text) : anchor === "middle" ? wide(text) / 2 : 0);
      const y = number(element, "y", 0);
      let before = "";
      for (const [font, part] of runs(text, bold)) {
        if (font === "dots") {
          const middle = x - wide(before.slice(-1)) / 2;
          part.split("").forEach((_, i) => body.push(`${f(middle + (i - (part.length - 1) / 2) * 0.2 * size - 0.05 * size)} ${f(y - 0.72 * size)} ${f(0.1 * size)} ${f(0.1 * size)} re f`));
          continue;
        }
        body.push(`BT /${font} ${f(size)} Tf 1 0 0 -1 ${f(x)} ${f(y)} Tm (${escape(part)}) Tj ET`);
        x += font === "F3" ? 0.55 * size * part.length : wide(part);
        before = part;
      }
    } else {
      if (name === "path") body.push(pathOf(element.getAttribute("d")));
      if (name === "rect") body.push(`${["x", "y", "width", "height"].map((n) => f(number(element, n, 0))).join(" ")} re`);
      if (name === "circle") {
        const x = number(element, "cx", 0), y = number(element, "cy", 0), r = number(element, "r", 0);
        body.push(pathOf(`M${x - r} ${y}A${r} ${r} 0 0 1 ${x + r} ${y}A${r} ${r} 0 0 1 ${x - r} ${y}Z`));
      }
      body.push(fill && stroke ? "B" : fill ? "f" : stroke ? "S" : "n");
    }
    body.push("Q");
  }
  draw(svg);
  const fonts = ["Helvetica", "Helvetica-Bold", "Symbol"];
  const content = body.join("\n"), ansi = "/Encoding /WinAnsiEncoding";
  const states_ = Array.from(states, ([key, name]) => { const [a, b] = key.split(" "); return `/${name} << /ca ${a} /CA ${b} >>`; }).join(" ");
  const plain = Array.from(caption || "", (c) => (c.codePointAt(0) < 128 ? c : "-")).join("");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${(W * k).toFixed(2)} ${(H * k).toFixed(2)}] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R /F3 7 0 R >> /ExtGState << ${states_} >> >> >>`,
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    ...fonts.map((name) => `<< /Type /Font /Subtype /Type1 /BaseFont /${name} ${name === "Symbol" ? "" : ansi} >>`),
    `<< /Title (${escape(plain)}) /Producer (Tangere) >>`,
  ];
  let out = "%PDF-1.4\n";
  const at = objects.map((text, i) => { const place = out.length; out += `${i + 1} 0 obj\n${text}\nendobj\n`; return place; });
  const start = out.length;
  out += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${at.map((p) => `${String(p).padStart(10, "0")} 00000 n \n`).join("")}`;
  out += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info ${objects.length} 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Uint8Array.from(out, (c) => c.charCodeAt(0));
}
