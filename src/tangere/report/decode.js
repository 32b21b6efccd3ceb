"use strict";
/* Tangere report: numbers and small drawing tools. Everything from outside enters as text, never as markup. */
const SVG = "http://www.w3.org/2000/svg";

/* An SVG element with attributes. */
function make(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(element);
  return element;
}

/* {"f4": base64} or {"f8": base64}, little endian, as an array of numbers. */
function decode(block) {
  const raw = atob(block.f4 !== undefined ? block.f4 : block.f8);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const view = new DataView(bytes.buffer);
  const size = block.f4 !== undefined ? 4 : 8;
  const out = new Float64Array(raw.length / size);
  for (let i = 0; i < out.length; i++) out[i] = size === 4 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true);
  return out;
}

/* First index whose value is not below x; values ascend. */
function lower(values, x) {
  let a = 0, b = values.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (values[m] < x) a = m + 1; else b = m;
  }
  return a;
}

/* Round values inside [low, high], about `count` of them. */
function ticks(low, high, count) {
  const width = high - low;
  if (!(width > 0) || !isFinite(width)) return [];
  const power = Math.pow(10, Math.floor(Math.log10(width / count)));
  let step = 10 * power;
  for (const f of [1, 2, 5, 10]) if (width / (power * f) <= count) { step = power * f; break; }
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * width && out.length < 2 * count; k++) out.push(k * step);
  out.step = step;
  return out;
}

function tickLabel(value, step) {
  if (Math.abs(value) < 1e-9 * step) return "0";
  if ((Math.abs(value) >= 1e5 && step > 1e-3 * Math.abs(value)) || step < 1e-4) return Number(value.toPrecision(4)).toExponential().replace(/-/g, "−");
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace("-", "−");
}

/* Powers of ten between 10^low and 10^high. */
function decades(low, high) {
  const out = [], step = Math.max(1, Math.ceil((high - low) / 6));
  for (let k = Math.ceil(low); k <= high; k += step) out.push(Math.pow(10, k));
  return out;
}

/* A number for the read-out: five digits, or as many as are said. */
function readable(value, digits) {
  if (!isFinite(value)) return "–";
  const size = Math.abs(value);
  if (digits) return size >= 1e4 || size < 1e-3 ? value.toExponential(0).replace(/-/g, "−") : String(Number(value.toPrecision(digits)));
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(3).replace(/-/g, "−");
  return value.toFixed(size === 0 ? 0 : Math.min(7, Math.max(0, 4 - Math.floor(Math.log10(size))))).replace("-", "−");
}

/* What all figures share: the times of whole columns, the stretch of time shown (null: all of it), the time under the cursor, who listens. */
const shared = {
  times: null, range: null, cursor: null, listeners: [],
  tell() { for (const listener of this.listeners) listener(); },
  zoom(range) { this.range = range; this.tell(); },
  point(time) { if (time !== this.cursor) { this.cursor = time; this.tell(); } },
};
