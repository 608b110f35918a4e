"use strict";
// Charts as SVG that take the colours of the page and the width of their box.
const charts = (function () {
  const tip = document.getElementById("tip");
  // Commas between thousands from 10,000, so that years have none.
  const grouped = (text) => (/^-?\d{5}/.test(text) ? text.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ",")) : text);
  const minus = (text) => text.replace("-", "\u2212");

  // ---------------------------------------------------------------------- text
  function showTip(text, event) {
    tip.textContent = text;
    tip.style.display = "block";
    const box = tip.getBoundingClientRect(), above = event.clientY - box.height - 10;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(4, event.clientY + 18 + box.height > innerHeight ? above : event.clientY + 18) + "px";
  }
  const hideTip = () => { tip.style.display = "none"; };

  // A number with the given significant digits, without an exponent if it is not extreme.
  function number(value, digits = 4) {
    if (value === null || !isFinite(value)) return "\u2013";
    if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7)) return minus(value.toExponential(digits - 1));
    const decimals = value === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
    return minus(grouped(String(Number(value.toFixed(Math.min(decimals, 12))))));
  }
  // A number with two digits of its uncertainty.
  function rounded(value, std) {
    if (!(std > 0) || std < 1e-8 || Math.abs(value) >= 1e7) return number(value, 5);
    return minus(grouped(value.toFixed(Math.max(0, Math.min(12, 1 - Math.floor(Math.log10(std)))))));
  }
  const dateText = (days) => new Date(Math.round(days * 864e5)).toISOString().slice(0, days % 1 ? 16 : 10).replace("T", " ");
  // Names of the values of an input that has names rather than numbers: 0, 1, and so on.
  const timeText = (hours) => new Date(Math.min(Math.round(hours * 60), 1439) * 6e4).toISOString().slice(11, 16);
  const namesOf = (input) => input.words || (input.levels ? input.levels.map((level) => level.name) : null);
  function text(input, value) {
    if (value === null) return "missing";
    if (namesOf(input)) return namesOf(input)[value] ?? number(value);
    return input.kind === "date" ? dateText(value) : input.kind === "time" ? timeText(value) : number(value, 6);
  }

  // ---------------------------------------------------------------------- axes
  function ticks(min, max, n) {
    const raw = (max - min) / Math.max(n, 1), power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= raw), out = [];
    for (let v = Math.ceil(min / step) * step; v <= max + 1e-9 * step; v += step) out.push(Math.abs(v) < 1e-9 * step ? 0 : v);
    if (out.length < 2 && n < 9) return ticks(min, max, n + 1);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const large = Math.max(Math.abs(min), Math.abs(max)) >= 1e6 || decimals > 5;
    return out.map((v) => [v, minus(large ? number(v, 3) : grouped(v.toFixed(decimals)))]);
  }
  function dateTicks(min, max, n) {
    const days = ticks(min, max, n).map(([v]) => v), years = (max - min) > 365 * (n - 1);
    if (!years) return days.map((v) => [Math.round(v), dateText(Math.round(v)).slice((max - min) > 300 ? 0 : 5, (max - min) > 300 ? 7 : 10)]);
    const first = new Date(min * 864e5).getUTCFullYear() + 1, last = new Date(max * 864e5).getUTCFullYear();
    const step = Math.max(1, Math.ceil((last - first + 1) / n)), out = [];
    for (let y = first; y <= last; y += step) out.push([Date.UTC(y, 0, 1) / 864e5, String(y)]);
    return out;
  }
  function ticksOf(axis, n) {
    if (!axis.names) return axis.kind === "date" ? dateTicks(axis.min, axis.max, n) : ticks(axis.min, axis.max, n);
    const step = Math.max(1, Math.ceil(axis.names.length / n));
    return axis.names.map((t, k) => [k, shorten(t, 14)]).filter(([k]) => k % step === 0);
  }
  const holder = document.createElement("div");
  holder.innerHTML = "<svg></svg>";
  const namespace = holder.firstChild.namespaceURI;
  function element(parent, name, attributes = {}, content) {
    const out = document.createElementNS(namespace, name);
    for (const key in attributes) out.setAttribute(key, attributes[key]);
    if (content !== undefined) out.textContent = content;
    parent.append(out);
    return out;
  }
  const shorten = (name, n) => (name.length <= n ? name : name.slice(0, n - 1) + "\u2026");

  // The axis of an input: its ends, and ticks for about n places.
  function axisOf(input, label) {
    const out = { label: label || input.name, kind: input.kind, input };
    const names = namesOf(input);
    if (names) return Object.assign(out, { min: -0.6, max: names.length - 0.4, names });
    const pad = 0.02 * (input.high - input.low) || 0.5;
    return Object.assign(out, { min: input.low - pad, max: input.high + pad });
  }
  function range(values, pad = 0.05) {
    let min = Infinity, max = -Infinity;
    for (const v of values) if (v !== null && isFinite(v)) { min = Math.min(min, v); max = Math.max(max, v); }
    if (!(max > min)) { const room = Math.abs(max) * 0.1 || 1; min -= room; max += room; }
    return { min: min - pad * (max - min), max: max + pad * (max - min) };
  }

  // An empty chart: the plot area with axes, and functions from values to places.
  function frame(box, { x, y, height = 300, name }) {
    box.replaceChildren();
    const width = Math.max(220, box.clientWidth), names = x.names, yTicks = ticksOf(y, height / 42);
    const left = 26 + 7.2 * Math.max(...yTicks.map(([, t]) => t.length), 1);
    const inner = width - left - 10, each = names ? inner / names.length : 0;
    const longest = names ? Math.min(14, Math.max(...names.map((n) => n.length))) : 0;
    const turned = names && 6.6 * longest > each - 4, bottom = turned ? 34 + 5.2 * longest : 46;
    const svg = element(box, "svg", { class: "plot", viewBox: `0 0 ${width} ${height + bottom}`, width, height: height + bottom, role: "img", "aria-label": name || `${y.label} against ${x.label}` });
    const px = (v) => left + inner * (v - x.min) / (x.max - x.min);
    const py = (v) => 8 + (height - 8) * (1 - (v - y.min) / (y.max - y.min));
    for (const [v, t] of yTicks) {
      element(svg, "line", { class: "grid", x1: left, x2: left + inner, y1: py(v), y2: py(v) });
      element(svg, "text", { class: "tick", x: left - 6, y: py(v) + 4, "text-anchor": "end" }, t);
    }
    const many = names ? inner / (turned ? 15 : 1) : Math.max(2, Math.floor(inner / 85));
    for (const [v, t] of ticksOf(x, many)) {
      const at = px(v), place = turned ? { x: at + 3, y: height + 14, "text-anchor": "end", transform: `rotate(-40 ${at + 3} ${height + 14})` } : { x: at, y: height + 17, "text-anchor": "middle" };
      element(svg, "line", { class: "axis", x1: at, x2: at, y1: height, y2: height + 4 });
      element(svg, "text", Object.assign({ class: "tick" }, place), t);
    }
    element(svg, "line", { class: "axis", x1: left, x2: left + inner, y1: height, y2: height });
    element(svg, "text", { class: "label", x: left + inner / 2, y: height + bottom - 6, "text-anchor": "middle" }, shorten(x.label, Math.max(8, Math.floor(inner / 7.5))));
    if (y.label) element(svg, "text", { class: "label", x: 12, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${height / 2})` }, shorten(y.label, Math.max(8, Math.floor(height / 7.5))));
    // An inner <svg> cuts off what lies outside the axes.
    const inside = { x: left, y: 4, width: inner, height: height - 4 };
    const plot = element(svg, "svg", Object.assign({ viewBox: Object.values(inside).join(" ") }, inside));
    return { svg, plot, px, py, left, inner, height };
  }

  // ------------------------------------------------------------------- content
  const path = (f, xs, ys) => xs.map((v, k) => `${k ? "L" : "M"}${f.px(v).toFixed(1)} ${f.py(ys[k]).toFixed(1)}`).join("");
  const line = (f, xs, ys, kind) => element(f.plot, "path", { class: kind, d: path(f, xs, ys) });
  function band(f, xs, low, high, kind) {
    const back = xs.map((v, k) => [v, high[k]]).reverse().map(([v, y]) => `L${f.px(v).toFixed(1)} ${f.py(y).toFixed(1)}`).join("");
    element(f.plot, "path", { class: kind, d: path(f, xs, low) + back + "Z" });
  }
  const bar = (f, v, low, high, kind) => element(f.plot, "line", { class: kind, x1: f.px(v), x2: f.px(v), y1: f.py(low), y2: f.py(high) });
  const dot = (f, v, y, kind, r = 3.2) => element(f.plot, "circle", { class: kind, cx: f.px(v).toFixed(1), cy: f.py(y).toFixed(1), r });
  function rug(f, marks) {
    for (const v of marks) element(f.plot, "line", { class: "rug", x1: f.px(v), x2: f.px(v), y1: f.height, y2: f.height - 7 });
  }
  // Text at the nearest of some places on the x axis.
  function hover(f, xs, words) {
    const mark = element(f.plot, "line", { class: "cursor", y1: 0, y2: f.height, visibility: "hidden" });
    f.svg.addEventListener("pointermove", (event) => {
      const box = f.svg.getBoundingClientRect(), at = (event.clientX - box.left) * f.svg.viewBox.baseVal.width / box.width;
      let best = 0;
      xs.forEach((v, k) => { if (Math.abs(f.px(v) - at) < Math.abs(f.px(xs[best]) - at)) best = k; });
      mark.setAttribute("x1", f.px(xs[best]));
      mark.setAttribute("x2", f.px(xs[best]));
      mark.setAttribute("visibility", "visible");
      showTip(words(best), event);
    });
    f.svg.addEventListener("pointerleave", () => { mark.setAttribute("visibility", "hidden"); hideTip(); });
  }

  // Draw now, and again when the width of the box changes, also when it becomes visible.
  function responsive(box, draw) {
    let width = -1;
    const redraw = () => { if (box.clientWidth && box.clientWidth !== width) { width = box.clientWidth; draw(); } };
    new ResizeObserver(redraw).observe(box);
    redraw();
  }

  // ----------------------------------------------------------------- downloads
  const cell = (value) => {
    const words = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(words) ? `"${words.replace(/"/g, '""')}"` : words;
  };
  const csv = (header, rows) => [header, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  function download(name, header, rows) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(header, rows)], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  return { showTip, hideTip, number, rounded, text, namesOf, axisOf, range, frame, line, band, bar, dot, rug, hover, element, responsive, csv, download, dateText, timeText, shorten };
})();
