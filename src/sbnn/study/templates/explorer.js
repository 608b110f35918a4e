"use strict";
// Evidence and posterior of a Gaussian mixture under the ARD prior, in closed form, as α changes.
const explorer = (function () {
  const data = JSON.parse(document.getElementById("page-data").textContent), byId = (id) => document.getElementById(id);
  const unpack = (text) => new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const means = unpack(data.means), covariances = unpack(data.covariances), logWeights = unpack(data.logWeights), normal = unpack(data.normal);
  const d = data.dimension, nKernels = logWeights.length, free = data.ard.map((yes, k) => (yes ? k : -1)).filter((k) => k >= 0);

  // Small dense matrices as arrays of rows.
  const matrix = (n, entry) => Array.from({ length: n }, (_, i) => Float64Array.from({ length: n }, (_, j) => entry(i, j)));
  function cholesky(a) {
    const n = a.length, l = matrix(n, () => 0);
    for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) {
      let sum = a[i][j];
      for (let k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      l[i][j] = i === j ? Math.sqrt(sum) : sum / l[j][j];
    }
    return l;
  }
  function forward(l, b) { // L⁻¹ b
    const x = Float64Array.from(b);
    for (let i = 0; i < x.length; i++) { for (let k = 0; k < i; k++) x[i] -= l[i][k] * x[k]; x[i] /= l[i][i]; }
    return x;
  }
  function backward(l, b) { // L⁻ᵀ b
    const x = Float64Array.from(b);
    for (let i = x.length - 1; i >= 0; i--) { for (let k = i + 1; k < x.length; k++) x[i] -= l[k][i] * x[k]; x[i] /= l[i][i]; }
    return x;
  }
  const solve = (l, b) => backward(l, forward(l, b));
  const sigma = (g) => matrix(d, (i, j) => covariances[(g * d + i) * d + j]);
  // The groups of kernels differ in the order of the neurons only.
  const groups = data.orders.map((order, g) => ({ order, sigma: sigma(g), factor: cholesky(sigma(g)) }));

  // log w̃ of every kernel: log a − ½ log|B̃| + ½ Σ λ − ½ |L⁻¹(q∘μ)|² − ½ n log 2π, B̃ = I + QΣQ.
  function kernels(logAlpha) {
    const q = logAlpha.map((v) => Math.exp(0.5 * v)), n = free.length, out = new Float64Array(nKernels * groups.length), white = new Float64Array(n);
    const constant = 0.5 * logAlpha.reduce((a, b) => a + b, 0) - 0.5 * n * Math.log(2 * Math.PI) + data.logNormaliser;
    groups.forEach((group, g) => {
      const l = cholesky(matrix(n, (i, j) => (i === j ? 1 : 0) + q[i] * group.sigma[free[i]][free[j]] * q[j]));
      let logDet = 0;
      for (let i = 0; i < n; i++) logDet += 2 * Math.log(l[i][i]);
      for (let k = 0; k < nKernels; k++) {
        let squares = 0;
        for (let i = 0; i < n; i++) { // white = L⁻¹(q∘μ), without new arrays: there are many kernels
          let sum = q[i] * means[k * d + group.order[free[i]]];
          for (let j = 0; j < i; j++) sum -= l[i][j] * white[j];
          white[i] = sum / l[i][i];
          squares += white[i] * white[i];
        }
        out[g * nKernels + k] = logWeights[k] + constant - 0.5 * logDet - 0.5 * squares;
      }
    });
    return out;
  }
  function logSum(values) {
    const top = values.reduce((a, b) => Math.max(a, b), -Infinity);
    return top + Math.log(values.reduce((s, v) => s + Math.exp(v - top), 0));
  }
  const logEvidence = (logAlpha) => logSum(kernels(logAlpha));

  // Draws of the posterior: kernels by their weights, then N(M⁻¹ Σ⁻¹ μ, M⁻¹) with M = Σ⁻¹ + A.
  function draws(logAlpha) {
    const logs = kernels(logAlpha), total = logSum(logs), alpha = new Float64Array(d);
    free.forEach((p, i) => { alpha[p] = Math.exp(logAlpha[i]); });
    const unit = (i) => Float64Array.from({ length: d }, (_, j) => (i === j ? 1 : 0));
    const posterior = groups.map(({ factor }) => {
      const inverse = Array.from({ length: d }, (_, i) => solve(factor, unit(i)));
      return cholesky(matrix(d, (i, j) => inverse[i][j] + (i === j ? alpha[i] : 0)));
    });
    let k = 0, sum = Math.exp(logs[0] - total);
    return data.uniform.map((u, row) => {
      while (sum < u && k + 1 < logs.length) sum += Math.exp(logs[++k] - total);
      const g = Math.floor(k / nKernels), l = posterior[g], start = (k % nKernels) * d;
      const centre = solve(l, solve(groups[g].factor, groups[g].order.map((p) => means[start + p])));
      const noise = backward(l, normal.subarray(row * d, (row + 1) * d));
      return centre.map((v, i) => v + noise[i]);
    });
  }
  // A 1-h-1 network: W[1], b[1], W[2], b[2].
  function network(phi, x) {
    const h = data.hidden;
    let sum = phi[3 * h];
    for (let i = 0; i < h; i++) sum += phi[2 * h + i] * Math.tanh(phi[i] * x + phi[h + i]);
    return sum;
  }

  // --------------------------------------------------------------------- page
  const start = data.logAlpha.slice(), values = start.slice(), best = logEvidence(start);
  const grid = Array.from({ length: 81 }, (_, k) => -6 + 0.15 * k), places = Array.from({ length: 41 }, (_, k) => data.span[0] + k * (data.span[1] - data.span[0]) / 40);
  let chosen = data.sliders[0];
  const fixed = (v, n = 2) => v.toFixed(n).replace("-", "\u2212");
  function update() {
    const now = logEvidence(values);
    byId("evidence-value").textContent = `log evidence ${fixed(now)}, ${fixed(now - best)} relative to the optimum of the mixture`;
    const along = places.map((v) => { const some = values.slice(); some[chosen] = v; return logEvidence(some); });
    const y = charts.range([...along, now], 0.08), f = charts.frame(byId("profile"), { x: { min: data.span[0], max: data.span[1], label: `log α of ${data.names[chosen]}` }, y: Object.assign(y, { label: "log evidence" }), height: 240 });
    charts.line(f, places, along, "curve");
    charts.dot(f, values[chosen], now, "here", 6);
    charts.hover(f, places, (k) => `log α = ${fixed(places[k], 1)}\nlog evidence ${fixed(along[k])}`);
    const some = draws(values), bands = grid.map((x) => some.map((phi) => network(phi, x)).sort((a, b) => a - b));
    const at = (level) => bands.map((b) => b[Math.min(b.length - 1, Math.floor(level * b.length))]);
    const view = { min: -5, max: 7, label: "y" }, g = charts.frame(byId("bands"), { x: { min: -6, max: 6, label: "x" }, y: view, height: 240 });
    charts.band(g, grid, at(0.025), at(0.975), "inner");
    charts.line(g, grid, at(0.5), "curve");
    charts.line(g, grid, grid.map((x) => 2 * Math.tanh(5 * x + 5) + 2 * Math.tanh(5 - 5 * x)), "guide");
    data.x.forEach((x, k) => charts.dot(g, x, data.y[k], "data", 2.5));
  }
  let waiting = 0;
  const later = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(update); };
  const sliders = data.sliders.map((k) => {
    const row = document.createElement("div"), label = document.createElement("label"), slider = document.createElement("input"), shown = document.createElement("output");
    row.className = "slider";
    Object.assign(slider, { type: "range", min: data.span[0], max: data.span[1], step: 0.1, id: "alpha-" + k });
    Object.assign(label, { htmlFor: slider.id, textContent: `log α of ${data.names[k]}` });
    const show = () => { slider.value = values[k]; shown.textContent = fixed(values[k], 1); };
    slider.addEventListener("input", () => { values[k] = slider.valueAsNumber; chosen = k; show(); later(); });
    slider.addEventListener("focus", () => { if (chosen !== k) { chosen = k; later(); } });
    row.append(label, slider, shown);
    byId("sliders").append(row);
    show();
    return show;
  });
  byId("alpha-reset").addEventListener("click", () => { start.forEach((v, k) => { values[k] = v; }); sliders.forEach((show) => show()); later(); });
  charts.responsive(byId("profile"), update);
  return { logEvidence, draws, data };
})();
