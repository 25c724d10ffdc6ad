// Levels over time of one iteration: what fills HBM, the pool, the links, the engines.
const KINDS = ["weight", "optimizer", "gradient", "kv", "activation", "input", "other", "workspace"];  // bottom to top
const KIND_NAMES = { weight: "weights", optimizer: "optimizer state", gradient: "gradients", kv: "KV cache",
  activation: "activations", input: "inputs", other: "other", workspace: "workspace" };

const timeAxis = (unit) => ({
  label: `time into the iteration (${unit[1]})`,
  axis: { values: (u, ticks) => ticks.map((t) => tick(t)) },
});
const timesOf = (memory, window, unit) => [...memory.time_s, window.end_s - window.start_s].map((t) => t / unit[0]);
const held = (values, divisor) => [...values, values[values.length - 1]].map((v) => v / divisor);

const memoryChart = (series, window) => {
  const memory = window.memory, kinds = KINDS.filter((k) => memory.hbm_bytes_by_kind[k]);
  const unit = timeUnit(window.end_s - window.start_s), capacity = series.hbm_usable_bytes;
  const peak = Math.max(...memory.hbm_bytes), bytes = bytesUnit(Math.max(peak, capacity));
  const sums = [];
  for (const k of kinds) {
    const below = sums[sums.length - 1];
    sums.push(memory.hbm_bytes_by_kind[k].map((v, i) => v + (below ? below[i] : 0)));
  }
  const top = Math.max(peak, capacity <= peak * 3 ? capacity : 0) / bytes[0];
  return () => ({
    label: `HBM in use over the iteration, by kind: highest ${format.bytes(peak)} of ${format.bytes(capacity)}.`,
    height: 300, sync: "time",
    data: [timesOf(memory, window, unit), ...sums.slice().reverse().map((s) => held(s, bytes[0]))],
    // The highest sum first; the next, opaque, in front of it.
    series: kinds.slice().reverse().map((k) => ({ label: k, paths: stepped(), width: 0, fill: colour(k), stroke: colour(k) })),
    x: timeAxis(unit),
    y: { label: bytes[1], range: () => [0, top * 1.14] },
    lines: [{ value: capacity / bytes[0], name: `capacity ${format.bytes(capacity)}`, stroke: colour("capacity") }],
    hint: "Drag to zoom, double-click to see all; with the keyboard: arrows, + − 0.",
    read: (i) => {
      const at = Math.min(i, memory.time_s.length - 1);
      return [`at ${format.time(memory.time_s[at])}: `, el("b", {}, format.bytes(memory.hbm_bytes[at])), " — ",
        kinds.map((k) => `${KIND_NAMES[k]} ${format.bytes(memory.hbm_bytes_by_kind[k][at])}`).join(", ")];
    },
  });
};

const poolChart = (series, window) => {
  const memory = window.memory, unit = timeUnit(window.end_s - window.start_s);
  const peak = Math.max(...memory.pool_bytes), bytes = bytesUnit(peak);
  return () => ({
    label: `Pool in use over the iteration: highest ${format.bytes(peak)} of ${format.bytes(series.pool_capacity_bytes)}.`,
    height: 190, sync: "time",
    data: [timesOf(memory, window, unit), held(memory.pool_bytes, bytes[0])],
    series: [{ paths: stepped(), stroke: colour("kv"), fill: colour("kv") + "33" }],
    x: timeAxis(unit), y: { label: bytes[1] },
    lines: [{ value: series.pool_capacity_bytes / bytes[0], name: "capacity", stroke: colour("capacity") }],
    read: (i) => {
      const at = Math.min(i, memory.time_s.length - 1);
      return [`at ${format.time(memory.time_s[at])}: `, el("b", {}, format.bytes(memory.pool_bytes[at]))];
    },
  });
};

// Averages over equal steps; the last step may be cut short by the iteration's end.
const stepsOf = (window) => {
  const use = window.use, length = window.end_s - window.start_s, n = use.pool_to_hbm_bytes.length;
  const from = Array.from({ length: n }, (_, i) => i * use.step_s);
  return { from: [...from, length], width: from.map((t) => Math.min(use.step_s, length - t)), n };
};
const linkChart = (series, window) => {
  const { from, width, n } = stepsOf(window), use = window.use, unit = timeUnit(from[n]);
  const rates = ["pool_to_hbm", "hbm_to_pool"].map((d) => use[`${d}_bytes`].map((b, i) => b / width[i]));
  const limits = [series.links.pool_to_hbm, series.links.hbm_to_pool].map((l) => l.bandwidth_bytes_per_s);
  const rate = rateUnit(Math.max(...limits));
  return () => ({
    label: `Link use over the iteration, each way; the links carry ${limits.map(format.rate).join(" in and ")} out.`,
    height: 220, sync: "time",
    data: [from.map((t) => t / unit[0]), ...rates.map((r) => held(r, rate[0]))],
    series: [{ paths: stepped(), stroke: colour("in"), fill: colour("in") + "33" }, { paths: stepped(), stroke: colour("out") }],
    x: timeAxis(unit), y: { label: rate[1], range: () => [0, (Math.max(...limits) / rate[0]) * 1.15] },
    lines: [{ value: limits[0] / rate[0], name: `pool → HBM ${format.rate(limits[0])}`, stroke: colour("in") },
      ...(limits[1] === limits[0] ? [] : [{ value: limits[1] / rate[0], name: `HBM → pool ${format.rate(limits[1])}`, stroke: colour("out") }])],
    read: (i) => {
      const at = Math.min(i, n - 1);
      return [`from ${format.time(from[at])}, over ${format.time(width[at])}: in `, el("b", {}, format.rate(rates[0][at])),
        ", out ", el("b", {}, format.rate(rates[1][at]))];
    },
  });
};
const engineChart = (series, window) => {
  const { from, width, n } = stepsOf(window), unit = timeUnit(from[n]), engines = Object.entries(window.use.engine_busy_s);
  const shares = engines.map(([, busy]) => busy.map((b, i) => Math.min(1, b / width[i])));
  return () => ({
    label: `How busy each engine is over the iteration: ${engines.map(([name]) => name).join(", ")}.`,
    height: 190, sync: "time",
    data: [from.map((t) => t / unit[0]), ...shares.map((s) => held(s, 0.01))],
    series: engines.map((_, i) => ({ paths: stepped(), stroke: colour(`s${i % 8}`), fill: i ? undefined : colour("s0") + "33" })),
    x: timeAxis(unit), y: { label: "% busy", range: () => [0, 108] },
    read: (i) => {
      const at = Math.min(i, n - 1);
      return [`from ${format.time(from[at])}, over ${format.time(width[at])}: `,
        engines.map(([name], e) => `${name} ${format.percent(shares[e][at])}`).join(", ")];
    },
  });
};

// The same in numbers: the highest use in each of twenty equal stretches.
const memoryTable = (series, window) => {
  const memory = window.memory, length = window.end_s - window.start_s, rows = [], parts = 20;
  const kinds = KINDS.filter((k) => memory.hbm_bytes_by_kind[k]), { from, n } = stepsOf(window), use = window.use;
  let at = 0;
  for (let part = 0; part < parts; ++part) {
    const end = (length * (part + 1)) / parts;
    let best = at;
    while (at + 1 < memory.time_s.length && memory.time_s[at + 1] < end)
      if (memory.hbm_bytes[++at] > memory.hbm_bytes[best]) best = at;
    const carried = (name) => use[name].reduce((sum, b, i) => sum + (Math.floor((from[i] / length) * parts) === part ? b : 0), 0);
    rows.push(el("tr", {}, el("th", { scope: "row" }, format.time((length * part) / parts)), cell(memory.hbm_bytes[best], format.bytes),
      kinds.map((k) => cell(memory.hbm_bytes_by_kind[k][best], format.bytes)), cell(memory.pool_bytes[best], format.bytes),
      cell(carried("pool_to_hbm_bytes"), format.bytes), cell(carried("hbm_to_pool_bytes"), format.bytes)));
  }
  return table("The highest HBM use in each twentieth of the iteration, what filled it then, and the bytes moved meanwhile",
    [["from", "left"], "HBM", ...kinds.map((k) => KIND_NAMES[k]), "pool", "moved in", "moved out"], rows);
};

const timelineSection = (data) => {
  const named = data.runs.map((r) => r.policy).filter((p) => data.series[p]);
  if (!named.length)
    return el("section", { id: "time" }, el("h2", {}, "Over time"),
      el("p", { class: "lead" }, "There are no POLICY.series.json files beside the results: `hyperoffload run -o DIR` writes them."));
  let policy = named.includes(data.subject) ? data.subject : named[0], which = "last";
  const tools = el("div", { class: "tools" }), body = el("div");
  const draw = () => {
    const series = data.series[policy], all = series.iterations;
    const window = which === "first" ? all[0] : all[all.length - 1], memory = window.memory;
    const kinds = KINDS.filter((k) => memory.hbm_bytes_by_kind[k]);
    const peak = memory.hbm_bytes.reduce((best, v, i) => (v > memory.hbm_bytes[best] ? i : best), 0);
    const one = [memoryChart, linkChart, poolChart, engineChart].map((make) => new Chart(make(series, window)));
    const few = memory.changes > memory.time_s.length || memory.step_s > 1e-9;
    body.replaceChildren(
      el("h3", {}, "HBM, by what fills it"),
      el("ul", { class: "keys" }, kinds.map((k) => key(k, KIND_NAMES[k], format.bytes(memory.hbm_bytes_by_kind[k][peak]))),
        el("li", {}, `at the peak of `, el("b", { id: "series-peak", "data-value": memory.hbm_bytes[peak] }, format.bytes(memory.hbm_bytes[peak])),
          `, ${format.time(memory.time_s[peak])} into the iteration`)),
      one[0].node,
      el("p", { class: "say", id: "aggregated" }, `${format.count(series.ops)} ops, ${format.count(memory.changes)} changes of memory`,
        few ? ` in ${format.count(memory.time_s.length)} points: changes within ${memory.step_s > 1e-9 ? format.time(memory.step_s) : "1 ns"} are drawn as one, at the highest use, so that peaks are exact.`
          : ", all drawn.", ` Link and engine use are averages over ${format.time(window.use.step_s)}.`),
      el("h3", {}, "Links"),
      el("ul", { class: "keys" }, key("in", "pool → HBM", undefined, "line"), key("out", "HBM → pool", undefined, "line"), key("in", "bandwidth", undefined, "line dash")),
      one[1].node,
      el("div", { class: "two" },
        el("div", {}, el("h3", {}, "Pool"), el("ul", { class: "keys" }, key("kv", "in use, all NPUs", undefined, "line")), one[2].node),
        el("div", {}, el("h3", {}, "Engines"), el("ul", { class: "keys" },
          Object.keys(window.use.engine_busy_s).map((name, i) => key(`s${i % 8}`, name, undefined, "line"))), one[3].node)),
      lazy("Numbers as a table", () => memoryTable(series, window)));
    one.forEach((chart) => chart.draw());
  };
  const redo = () => { draw(); };
  tools.append(choose("Policy", named.map((p) => [p, p]), policy, (v) => { policy = v; redo(); }));
  if (named.some((p) => data.series[p].iterations.length > 1))
    tools.append(choose("Iteration", [["last", "last"], ["first", "first (cold)"]], which, (v) => { which = v; redo(); }));
  return { node: el("section", { id: "time" }, el("h2", {}, "Over time"),
    el("p", { class: "lead" }, data.runs[0].npus.length > 1 ? "Of the slowest NPU." : "What fills HBM, and how the links keep up."), tools, body), draw };
};
const lazy = (summary, make) => {
  const node = el("details", {}, el("summary", {}, summary));
  node.addEventListener("toggle", () => node.open && node.children.length === 1 && node.append(make()));
  return node;
};
