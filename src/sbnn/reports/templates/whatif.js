"use strict";
// What if: controls of the inputs, the prediction, its curve over one input and over two.
const whatif = (function () {
  const data = report.data, box = document.getElementById("settings");
  if (!data.network || !box) return null;
  const inputs = data.inputs, network = predictor.create(data.network);
  const values = inputs.map((input) => input.start), setters = [];
  const at = (changed) => {
    const some = values.slice();
    for (const [k, v] of changed) some[k] = v;
    return encoding.encode(inputs, some);
  };
  const predict = (target, changed = [], band = true) => network.predict(at(changed), target, band);
  const options = (select, names) => names.forEach((name, k) => select.append(new Option(name, k)));
  const byId = (id) => document.getElementById(id);

  // ------------------------------------------------------------------ controls
  const asDate = (days) => charts.dateText(Math.floor(days));
  const fromDate = (text) => (text ? Date.parse(text + "T00:00Z") / 864e5 : NaN);
  function control(input, k) {
    const row = document.createElement("div"), name = document.createElement("label");
    row.className = "setting";
    name.textContent = input.name + (input.used ? "" : " (not used)");
    row.classList.toggle("unused", !input.used);
    name.htmlFor = "input-" + k;
    row.append(name);
    const changed = (v) => { if (isFinite(v)) { values[k] = v; setters[k](v); update(); } };
    if (charts.namesOf(input)) {
      const select = document.createElement("select");
      select.id = name.htmlFor;
      options(select, charts.namesOf(input));
      select.addEventListener("change", () => changed(Number(select.value)));
      row.append(select);
      setters[k] = (v) => { select.value = v; };
    } else {
      const slider = document.createElement("input"), exact = document.createElement("input");
      const isDate = input.kind === "date", isTime = input.kind === "time";
      const step = input.whole ? 1 : (input.high - input.low) / 500 || 1;
      Object.assign(slider, { type: "range", min: input.low, max: input.high, step: input.whole ? 1 : "any", id: name.htmlFor });
      Object.assign(exact, { type: isDate ? "date" : isTime ? "time" : "number", step: "any", ariaLabel: input.name + ", exact value" });
      // Arrow keys move by a five-hundredth of the range: without a step they would hardly move.
      slider.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (way && !input.whole) { event.preventDefault(); changed(Math.min(Math.max(values[k] + way * step, input.low), input.high)); }
      });
      slider.addEventListener("input", () => changed(slider.valueAsNumber));
      exact.addEventListener("input", () => changed(isDate ? fromDate(exact.value) : isTime ? exact.valueAsNumber / 36e5 : exact.valueAsNumber));
      row.append(slider, exact);
      setters[k] = (v) => {
        slider.value = v;
        if (exact !== document.activeElement) exact.value = isDate ? asDate(v) : isTime ? charts.timeText(v) : Number(v.toPrecision(7));
        row.classList.toggle("outside", v < input.low || v > input.high);
      };
    }
    return row;
  }

  // ------------------------------------------------------------------- answers
  function answer() {
    const outside = inputs.filter((input, k) => input.kind !== "category" && (values[k] < input.low || values[k] > input.high));
    const rows = data.targets.map((name, t) => {
      const p = predict(t), row = document.createElement("div"), value = document.createElement("b"), rest = document.createElement("span");
      value.textContent = `${name} = ${charts.rounded(p.mean, p.std)} ± ${charts.rounded(p.std, p.std)}`;
      rest.textContent = ` 95\u00a0% interval ${charts.rounded(p.lower, p.std)} to ${charts.rounded(p.upper, p.std)}`;
      row.append(value, rest);
      return row;
    });
    const warn = (some, start, rest) => {
      if (!some.length) return;
      const note = document.createElement("div");
      note.className = "note";
      note.textContent = `${start}: ${some.map((i) => i.name).join(", ")}. ${rest}`;
      rows.push(note);
    };
    warn(outside.filter((i) => i.low < i.high), "Outside the data", "The prediction extrapolates.");
    warn(outside.filter((i) => i.low === i.high), "One value in all of the data", "What another value changes is not known.");
    byId("answer").replaceChildren(...rows);
  }

  const along = byId("along"), target = byId("along-target");
  // All dates of a long curve are on one weekday: others would add a wiggle that it cannot resolve.
  function datesOf(input, n) {
    const step = Math.max(7, 7 * Math.round((input.high - input.low) / (n - 1) / 7));
    return Array.from({ length: 1 + Math.floor((input.high - input.low) / step) }, (_, k) => input.low + k * step);
  }
  const grid = (input, n) => (input.periods && input.periods.includes(7) && input.high - input.low > 3.5 * (n - 1) ? datesOf(input, n) : charts.namesOf(input) ? charts.namesOf(input).map((_, k) => k) : input.high > input.low ? Array.from({ length: n }, (_, k) => input.low + k * (input.high - input.low) / (n - 1)) : [input.low]);
  let curve = null;
  function draw() {
    const k = Number(along.value), t = Number(target.value), input = inputs[k];
    const xs = grid(input, 61), ps = xs.map((v) => predict(t, [[k, v]])), now = predict(t);
    curve = { input, t, xs, ps };
    const alone = inputs.length === 1 ? data.rows.y[t] : [];
    const y = Object.assign(charts.range([...ps.flatMap((p) => [p.lower, p.upper]), ...alone]), { label: data.targets[t] });
    const f = charts.frame(byId("curve"), { x: charts.axisOf(input), y, height: 270 });
    const of = (part) => ps.map((p) => p[part]);
    if (charts.namesOf(input)) {
      xs.forEach((v, j) => { charts.bar(f, v, ps[j].lower, ps[j].upper, "wide"); charts.bar(f, v, ps[j].low, ps[j].high, "narrow"); charts.dot(f, v, ps[j].mean, "dot", 4.5); });
    } else {
      charts.band(f, xs, of("lower"), of("upper"), "outer");
      charts.band(f, xs, of("low"), of("high"), "inner");
      if (alone.length) data.rows.inputs[0].forEach((v, j) => { if (v !== null) charts.dot(f, v, alone[j], "data", 2.5); });
      charts.line(f, xs, of("mean"), "curve");
      charts.rug(f, input.marks);
    }
    charts.dot(f, values[k], now.mean, "here", 6);
    charts.hover(f, xs, (j) => `${input.name} = ${charts.text(input, xs[j])}\n${data.targets[t]} = ${charts.rounded(ps[j].mean, ps[j].std)} ± ${charts.rounded(ps[j].std, ps[j].std)}\n95\u00a0%: ${charts.rounded(ps[j].lower, ps[j].std)} to ${charts.rounded(ps[j].upper, ps[j].std)}`);
  }

  // The mean over two inputs, as coloured cells.
  const first = byId("surface-x"), second = byId("surface-y"), more = byId("surface-more");
  const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  function colour(share) {
    const s = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1), k = Math.min(Math.floor(s), STOPS.length - 2);
    return `rgb(${STOPS[k].map((c, j) => Math.round(c + (s - k) * (STOPS[k + 1][j] - c))).join(",")})`;
  }
  function surface() {
    const i = Number(first.value), j = Number(second.value), t = Number(target.value), scale = byId("surface-scale");
    byId("surface").replaceChildren();
    scale.textContent = i === j ? "Choose two different inputs." : "";
    if (i === j || !more.open || !ready) return;
    const xs = grid(inputs[i], 28), ys = grid(inputs[j], 28);
    const z = ys.map((y) => xs.map((x) => predict(t, [[i, x], [j, y]], false)));
    const ends = charts.range(z.flat().map((p) => p.mean), 0), axis = (input, g) => {
      const half = g.length > 1 ? 0.5 * (g[1] - g[0]) : 0.5;
      return Object.assign(charts.axisOf(input), { min: g[0] - half, max: g[g.length - 1] + half, half });
    };
    const x = axis(inputs[i], xs), y = axis(inputs[j], ys);
    const f = charts.frame(byId("surface"), { x, y: Object.assign(y, { label: inputs[j].name }), height: 330, name: `${data.targets[t]} over ${inputs[i].name} and ${inputs[j].name}` });
    ys.forEach((v, b) => xs.forEach((u, a) => {
      const left = f.px(u - x.half), top = f.py(v + y.half);
      const cell = charts.element(f.plot, "rect", { x: left, y: top, width: f.px(u + x.half) - left + 0.6, height: f.py(v - y.half) - top + 0.6, fill: colour((z[b][a].mean - ends.min) / (ends.max - ends.min)) });
      cell.addEventListener("pointermove", (event) => charts.showTip(`${inputs[i].name} = ${charts.text(inputs[i], u)}\n${inputs[j].name} = ${charts.text(inputs[j], v)}\n${data.targets[t]} = ${charts.rounded(z[b][a].mean, z[b][a].std)} ± ${charts.rounded(z[b][a].std, z[b][a].std)}`, event));
      cell.addEventListener("pointerleave", charts.hideTip);
    }));
    charts.dot(f, values[i], values[j], "here", 6);
    const legend = document.createElement("span");
    legend.className = "gradient";
    legend.style.background = `linear-gradient(90deg, ${STOPS.map((s) => `rgb(${s.join(",")})`).join(", ")})`;
    scale.replaceChildren(`${data.targets[t]}: ${charts.number(ends.min, 3)} `, legend, ` ${charts.number(ends.max, 3)}`);
  }

  let waiting = 0, ready = false;
  function update() {
    if (!ready) return;
    answer();
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { draw(); if (more && more.open) surface(); });
  }
  function set(row) {
    row.forEach((v, k) => { if (v !== null) { values[k] = v; setters[k](v); } });
    update();
  }

  data.order.forEach((k) => box.append(control(inputs[k], k)));
  data.order.forEach((k) => along.append(new Option(inputs[k].name, k)));
  options(target, data.targets);
  target.parentElement.hidden = data.targets.length < 2;
  along.addEventListener("change", draw);
  target.addEventListener("change", update);
  byId("reset").addEventListener("click", () => set(inputs.map((input) => input.start)));
  byId("curve-csv").addEventListener("click", () => {
    const { input, t, xs, ps } = curve, parts = ["mean", "std", "lower", "upper", "low", "high"];
    const header = [input.name, ...["mean", "std", "lower", "upper", "function_lower", "function_upper"].map((p) => `${data.targets[t]}_${p}`)];
    charts.download("curve.csv", header, xs.map((v, k) => [input.kind === "number" ? v : charts.text(input, v), ...parts.map((p) => ps[k][p])]));
  });
  if (more) {
    for (const select of [first, second]) {
      data.order.forEach((k) => select.append(new Option(inputs[k].name, k)));
      select.addEventListener("change", surface);
    }
    second.selectedIndex = 1;
    more.addEventListener("toggle", surface);
    charts.responsive(byId("surface"), surface);
  }
  setters.forEach((show, k) => show(values[k]));
  const start = () => { ready = true; answer(); charts.responsive(byId("curve"), draw); };
  network.prepare(start, (share) => { byId("answer").textContent = `Preparing the networks: ${Math.round(100 * share)}\u00a0%`; });
  return { set, predict, isReady: () => ready };
})();
