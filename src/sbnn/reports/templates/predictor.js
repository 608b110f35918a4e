"use strict";
// Predictions from the network of the page: the same numbers as `predict` of the library.
const predictor = (function () {
  const TINY = 1e-300;

  // ------------------------------------------------------------------ networks
  const sigmoid = (z) => 0.5 * (Math.tanh(0.5 * z) + 1);
  const activations = { // value g(z), and slope g'(z) given z and g(z)
    tanh: [Math.tanh, (z, a) => 1 - a * a],
    relu: [(z) => (z > 0 ? z : 0), (z) => (z > 0 ? 1 : 0)],
    sigmoid: [sigmoid, (z, a) => a * (1 - a)],
    softplus: [(z) => Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))), (z) => sigmoid(z)],
    sin: [Math.sin, (z) => Math.cos(z)],
    identity: [(z) => z, () => 1],
  };

  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Float64Array(bytes.buffer);
  }

  function network(found) {
    const starts = []; // of the weights of each layer in φ; its biases follow them
    let start = 0;
    for (let k = 0; k + 1 < found.sizes.length; k++) {
      starts.push(start);
      start += found.sizes[k + 1] * (found.sizes[k] + 1);
    }
    const factors = found.factors.map((f) => ({
      parameters: f.parameters, scale: unpack(f.scale), lower: f.lower === null ? null : unpack(f.lower),
    }));
    return Object.assign({}, found, { phi: unpack(found.phi), starts, factors });
  }

  // Outputs, and (z, a) of every layer, at standardised inputs.
  function forward(net, x) {
    const g = activations[net.activation][0], layers = [{ z: x, a: x }];
    for (let k = 0; k < net.starts.length; k++) {
      const nIn = net.sizes[k], nOut = net.sizes[k + 1], bias = net.starts[k] + nIn * nOut;
      const a = layers[k].a, z = new Float64Array(nOut);
      for (let i = 0; i < nOut; i++) {
        let sum = net.phi[bias + i];
        const row = net.starts[k] + i * nIn;
        for (let j = 0; j < nIn; j++) sum += net.phi[row + j] * a[j];
        z[i] = sum;
      }
      layers.push({ z, a: k + 1 < net.starts.length ? z.map(g) : z });
    }
    return layers;
  }

  // ∂(output o)/∂φ at full length, by S[l−1] = (W[l]ᵀ S[l]) ∘ g'(z[l−1]).
  function gradient(net, layers, o) {
    const out = new Float64Array(net.phi.length), slope = activations[net.activation][1];
    let sens = new Float64Array(net.sizes[net.sizes.length - 1]);
    sens[o] = 1;
    for (let k = net.starts.length - 1; k >= 0; k--) {
      const nIn = net.sizes[k], nOut = net.sizes[k + 1], start = net.starts[k], below = layers[k];
      const next = new Float64Array(nIn);
      for (let i = 0; i < nOut; i++) {
        if (sens[i] === 0) continue;
        const row = start + i * nIn;
        for (let j = 0; j < nIn; j++) {
          out[row + j] = sens[i] * below.a[j];
          next[j] += sens[i] * net.phi[row + j];
        }
        out[start + nIn * nOut + i] = sens[i];
      }
      sens = k > 0 ? next.map((s, j) => s * slope(below.z[j], below.a[j])) : next;
    }
    return out;
  }

  // J H⁻¹ Jᵀ = |L⁻¹ (A^-½ J)|², by forward substitution in the packed lower triangle L.
  function variance(net, jac) {
    let total = 0;
    for (const { parameters, scale, lower } of net.factors) {
      const h = new Float64Array(parameters.length);
      for (let i = 0, at = 0; i < h.length; i++) {
        let sum = scale[i] * jac[parameters[i]];
        for (let j = 0; j < i; j++) sum -= lower[at++] * h[j];
        h[i] = sum / lower[at++];
        total += h[i] * h[i];
      }
    }
    return total;
  }

  // L with L Lᵀ = I + Σ v vᵀ, packed, from vectors that `each` hands to its argument.
  function cholesky(n, each) {
    const lower = new Float64Array(n * (n + 1) / 2), starts = Array.from({ length: n }, (_, i) => i * (i + 1) / 2);
    each((v) => {
      for (let i = 0; i < n; i++) {
        const vi = v[i], row = starts[i];
        if (vi !== 0) for (let j = 0; j <= i; j++) lower[row + j] += vi * v[j];
      }
    });
    for (let i = 0; i < n; i++) {
      const a = starts[i];
      lower[a + i] += 1;
      for (let j = 0; j <= i; j++) {
        const b = starts[j];
        let sum = lower[a + j];
        for (let k = 0; k < j; k++) sum -= lower[a + k] * lower[b + k];
        lower[a + j] = i === j ? Math.sqrt(sum) : sum / lower[b + j];
      }
    }
    return lower;
  }

  // ------------------------------------------------------------------ mixtures
  // Normal distribution function: Marsaglia's series, and a continued fraction in the tails.
  function ndtr(z) {
    const density = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
    if (Math.abs(z) < 6) {
      let term = z, sum = z;
      for (let k = 3; Math.abs(term) > 1e-18 * Math.abs(sum); k += 2) sum += term *= z * z / k;
      return 0.5 + sum * density;
    }
    let tail = 0;
    for (let k = 40; k > 0; k--) tail = k / (Math.abs(z) + tail);
    const p = density / (Math.abs(z) + tail);
    return z < 0 ? p : 1 - p;
  }

  // Quantile of the standard normal distribution, by bisection.
  function ndtri(level) {
    let low = -40, high = 40;
    for (let k = 0; k < 80; k++) {
      const middle = 0.5 * (low + high);
      if (ndtr(middle) < level) low = middle; else high = middle;
    }
    return 0.5 * (low + high);
  }
  const cache = new Map();
  const normalQuantile = (level) => {
    if (!cache.has(level)) cache.set(level, ndtri(level));
    return cache.get(level);
  };

  // Quantile of Σ wₖ N(mₖ, sₖ²): Newton's method between the quantiles of the components.
  function quantile(parts, level) {
    const z = normalQuantile(level), start = moments(parts);
    let low = Infinity, high = -Infinity;
    for (const { mean, std } of parts) {
      low = Math.min(low, mean + z * std);
      high = Math.max(high, mean + z * std);
    }
    let y = Math.min(Math.max(start.mean + z * start.std, low), high);
    for (let k = 0; k < 200; k++) {
      let excess = -level, density = 0;
      for (const { weight, mean, std } of parts) {
        const u = (y - mean) / (std + TINY);
        excess += weight * ndtr(u);
        density += weight * Math.exp(-0.5 * u * u) / (std + TINY);
      }
      if (excess < 0) low = y; else high = y;
      let next = y - excess * Math.sqrt(2 * Math.PI) / density;
      if (!(next > low && next < high)) next = 0.5 * (low + high);
      const step = Math.abs(next - y);
      y = next;
      if (step <= 1e-14 * (Math.abs(y) + start.std)) break;
    }
    return y;
  }

  const moments = (parts) => {
    let mean = 0, squares = 0;
    for (const p of parts) mean += p.weight * p.mean;
    for (const p of parts) squares += p.weight * (p.std * p.std + (p.mean - mean) ** 2);
    return { mean, std: Math.sqrt(squares) };
  };

  // ---------------------------------------------------------------- predictions
  function create(data) {
    const nets = data.components.map(network), p = data.outputs, scaling = data.scaling;
    const logWeights = data.weights.map((w) => Math.log(w + TINY));

    // Mean and variance of the outputs of one network for target t. Outside the range of the training
    // inputs, only the first output goes on, and its variance grows.
    function outputs(net, x, t) {
      const { lower, upper, slope } = data.reach;
      const inside = x.map((v, j) => Math.min(Math.max(v, lower[j]), upper[j]));
      const layers = forward(net, inside), value = layers[layers.length - 1].a, mean = [], spread = [];
      for (let o = t * p; o < (t + 1) * p; o++) {
        mean.push(value[o]);
        spread.push(net.factors.length ? variance(net, gradient(net, layers, o)) : 0);
      }
      if (x.some((v, j) => v !== inside[j])) {
        const beyond = forward(net, x);
        mean[0] = beyond[beyond.length - 1].a[t * p];
        x.forEach((v, j) => { spread[0] += ((v - inside[j]) * slope[j][t]) ** 2; });
      }
      return { mean, spread };
    }

    // What an observation says about the outputs of target t: the centre and, if it varies, log σ.
    function information(net, t, mean) {
      const logSigma = p > 1 ? mean[1] : net.theta[t][0], nu = data.studentT ? net.nu[t] : 0;
      const centre = Math.exp(-2 * logSigma) * (data.studentT ? (nu + 1) / (nu + 3) : 1);
      return [centre, data.studentT ? 2 * nu / (nu + 3) : 2];
    }

    // The factors of a large network, H = Σ Jᵀ W J + diag(α), from the training inputs.
    function factorise(net, inputs, weights) {
      const nIn = net.sizes[0], nOut = net.sizes[net.sizes.length - 1];
      for (const factor of net.factors) {
        const v = new Float64Array(factor.parameters.length);
        factor.lower = cholesky(v.length, (add) => weights.forEach((weight, row) => {
          const layers = forward(net, inputs.subarray(row * nIn, (row + 1) * nIn)), value = layers[layers.length - 1].a;
          for (let o = 0; o < nOut; o++) {
            const t = Math.floor(o / p), mean = value.subarray(t * p, (t + 1) * p);
            const root = Math.sqrt(weight * information(net, t, mean)[o % p]), jac = gradient(net, layers, o);
            factor.parameters.forEach((k, i) => { v[i] = root * factor.scale[i] * jac[k]; });
            add(v);
          }
        }));
      }
    }

    // Call `ready` when all factors are known, after `progress(share)` for every network.
    function prepare(ready, progress) {
      if (!data.training) { ready(); return; }
      const bytes = Uint8Array.from(atob(data.training.inputs), (c) => c.charCodeAt(0));
      const inputs = Float64Array.from(new Int32Array(bytes.buffer), (v) => v * data.training.grid);
      const weights = unpack(data.training.weights);
      const next = (k) => {
        if (k === nets.length) { ready(); return; }
        progress(k / nets.length);
        setTimeout(() => { factorise(nets[k], inputs, weights); next(k + 1); }, 0);
      };
      next(0);
    }

    function localWeights(found, t) {
      let noise = 0;
      found.forEach((f, k) => { noise += data.weights[k] / information(nets[k], t, f.mean)[0]; });
      const logs = found.map((f, k) => logWeights[k] - data.power * Math.log(f.spread[0] + noise));
      const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
      const shares = logs.map((v) => Math.exp(v - top));
      const total = shares.reduce((a, b) => a + b, 0);
      return shares.map((v) => v / total);
    }

    // The nodes of log σ of one network, with their shares.
    function sigmas(net, t, f, uncertain) {
      if (p === 1) return [[net.theta[t][0], 1]];
      if (!uncertain) return [[f.mean[1], 1]];
      const [nodes, shares] = data.sigmaNodes, spread = Math.sqrt(f.spread[1]);
      return nodes.map((z, j) => [f.mean[1] + z * spread, shares[j]]);
    }

    // Normal components of y and of the function, and moments, for standardised targets.
    function at(x, t) {
      const found = nets.map((net) => outputs(net, x, t));
      const weights = data.power ? localWeights(found, t) : data.weights;
      const uncertain = found.some((f) => f.spread[p - 1] > 0), parts = [], whole = [], plain = [];
      found.forEach((f, k) => {
        plain.push({ weight: weights[k], mean: f.mean[0], std: Math.sqrt(f.spread[0]) });
        for (const [logSigma, share] of sigmas(nets[k], t, f, uncertain)) {
          const weight = weights[k] * share, mean = f.mean[0], sigma2 = Math.exp(2 * logSigma);
          if (!data.studentT) {
            parts.push({ weight, mean, std: Math.sqrt(f.spread[0] + sigma2) });
            continue;
          }
          const nu = nets[k].nu[t];
          whole.push({ weight, mean, std: Math.sqrt(f.spread[0] + sigma2 * nu / (nu - 2)) });
          nets[k].nodes[t].forEach((lambda, j) => parts.push(
            { weight: weight * nets[k].shares[t][j], mean, std: Math.sqrt(f.spread[0] + sigma2 / lambda) }));
        }
      });
      return { parts, plain, whole: data.studentT ? whole : parts };
    }

    const standardised = (x) => x.map((v, j) => (v - scaling.x_centre[j]) / scaling.x_scale[j]);

    /* Prediction of target t at encoded inputs, in the units of the target: mean, std, the 95 %
       interval [lower, upper] of an observation and that of the function, [low, high]. */
    function predict(encoded, t, band = true) {
      const { parts, plain, whole } = at(standardised(encoded), t);
      const scale = scaling.y_scale[t], unit = (v) => v * scale + scaling.y_centre[t];
      const { mean, std } = moments(whole), out = { mean: unit(mean), std: std * scale };
      if (!band) return out;
      return Object.assign(out, {
        lower: unit(quantile(parts, 0.025)), upper: unit(quantile(parts, 0.975)),
        low: unit(quantile(plain, 0.025)), high: unit(quantile(plain, 0.975)),
      });
    }
    return { predict, prepare };
  }
  return { create, quantile, ndtr };
})();

// Inputs as they are shown, and as the network takes them.
const encoding = (function () {
  // One for each knot but the first and the last: 1 there, 0 at its neighbours and beyond.
  const hats = (knots, x) => knots.slice(1, -1).map((knot, k) => {
    const low = knots[k], high = knots[k + 2];
    return Math.max(0, Math.min((x - low) / (knot - low), (high - x) / (high - knot)));
  });
  function columns(input, value) {
    let out;
    if (input.kind === "category") out = input.levels[value].code.slice();
    else if (input.kind === "empty") out = [0];
    else if (input.periods) {
      const days = value / input.days;
      out = input.periods.flatMap((period) => period === null ? [days]
        : [Math.sin(2 * Math.PI * days / period), Math.cos(2 * Math.PI * days / period)]);
    } else out = [value, ...hats(input.knots, value)];
    if (input.indicator) out.push(0); // the cell is not missing
    return out;
  }
  // One value per input: a number, days since 1970, hours of the day, or the position of a level.
  return { encode: (inputs, values) => inputs.flatMap((input, k) => columns(input, values[k])) };
})();
