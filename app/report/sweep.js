// A sweep: any figure against any axis, a line a policy.
const METRICS = [["iteration_s", "time per iteration", "time"], ["slowdown", "time, of ideal", "factor"], ["stall_s", "stall", "time"],
  ["hbm_peak_bytes", "peak HBM", "bytes"], ["pool_peak_bytes", "pool", "bytes"], ["pool_to_hbm_bytes", "moved in", "bytes"],
  ["hbm_to_pool_bytes", "moved out", "bytes"], ["throughput.tokens_per_s", "tokens/s", "number"], ["throughput.samples_per_s", "samples/s", "number"],
  ["first_iteration_s", "first iteration", "time"]];
const UNITS = { B: [1, "bytes"], kB: [1e3, "bytes"], MB: [1e6, "bytes"], GB: [1e9, "bytes"], TB: [1e12, "bytes"], KiB: [1024, "bytes"], MiB: [1024 ** 2, "bytes"],
  GiB: [1024 ** 3, "bytes"], TiB: [1024 ** 4, "bytes"], "B/s": [1, "rate"], "kB/s": [1e3, "rate"], "MB/s": [1e6, "rate"], "GB/s": [1e9, "rate"], "TB/s": [1e12, "rate"],
  "GiB/s": [1024 ** 3, "rate"], "TiB/s": [1024 ** 4, "rate"], Gbps: [1.25e8, "rate"], Mbps: [1.25e5, "rate"], Tbps: [1.25e11, "rate"],
  ns: [1e-9, "time"], us: [1e-6, "time"], ms: [1e-3, "time"], s: [1, "time"],
  GFLOPS: [1e9, "number"], TFLOPS: [1e12, "number"], PFLOPS: [1e15, "number"] };
const quantity = (text) => {
  const match = /^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([A-Za-z/]*)$/i.exec(text.trim());
  if (!match || (match[2] && !UNITS[match[2]])) return null;
  const [factor, kind] = match[2] ? UNITS[match[2]] : [1, "number"];
  return { value: Number(match[1]) * factor, kind };
};
const unitFor = (kind, largest) =>
  kind === "time" ? timeUnit(largest) : kind === "bytes" ? bytesUnit(largest) : kind === "rate" ? rateUnit(largest) : [1, ""];
const valueIn = (row, name) => (row[name] === "" || row[name] === undefined ? null : Number(row[name]));

// Zipped axes step together and are one: where a value of one column tells that of another. Adds a column of
// that name, "a + b", as the terminal calls it, to each row; one of them that tells the others stands for all.
const joinZipped = (columns, rows) => {
  const count = (names) => new Set(rows.map((r) => JSON.stringify(names.map((n) => r[n])))).size;
  const axes = [];
  for (const name of columns) {
    const several = count([name]) > 1;
    const mate = axes.find((group) => several && group.some((other) => count([other]) > 1 && count([other, name]) === Math.max(count([other]), count([name]))));
    if (mate) mate.push(name);
    else axes.push([name]);
  }
  return axes.map((group) => {
    const name = group.join(" + ");
    const one = group.find((n) => count([n]) === count(group));
    if (group.length > 1) for (const r of rows) r[name] = one ? r[one] : group.map((n) => r[n]).join(" + ");
    return name;
  });
};

const sweepSection = (data) => {
  const first = data.columns.indexOf("trace"), keys = data.columns.slice(0, Math.max(0, first));
  const rows = data.rows.map((fields) => Object.fromEntries(data.columns.map((c, i) => [c, fields[i]])));
  const axes = joinZipped(keys, rows);
  const values = (name) => [...new Set(rows.map((r) => r[name]))];
  const policies = values("policy"), moving = axes.filter((a) => values(a).length > 1);
  const xs = moving.length ? moving : axes.length ? axes : ["hbm_capacity_bytes"];
  const metrics = METRICS.filter(([name]) => rows.some((r) => valueIn(r, name) !== null));
  const state = { x: xs[0], y: metrics[0][0], at: Object.fromEntries(axes.map((a) => [a, rows[0][a]])) };
  const tools = el("div", { class: "tools" }), body = el("div");

  const draw = () => {
    const [, yName, yKind] = metrics.find(([name]) => name === state.y);
    const fixed = axes.filter((a) => a !== state.x);
    const here = rows.filter((r) => fixed.every((a) => r[a] === state.at[a]));
    const texts = [...new Set(here.map((r) => r[state.x]))], parsed = texts.map(quantity);
    const numeric = parsed.length > 0 && parsed.every((q) => q && q.kind === parsed[0].kind);
    const order = texts.map((_, i) => i);
    if (numeric) order.sort((a, b) => parsed[a].value - parsed[b].value);
    const xUnit = numeric ? unitFor(state.x.endsWith("_bytes") ? "bytes" : parsed[0].kind, Math.max(...parsed.map((q) => q.value))) : [1, ""];
    const x = order.map((i, at) => (numeric ? parsed[i].value / xUnit[0] : at));
    const rowOf = (policy, i) => here.find((r) => r.policy === policy && r[state.x] === texts[i]);
    const get = (policy, i, name) => { const r = rowOf(policy, i); return r ? valueIn(r, name) : null; };
    const lines = policies.map((p, c) => ({ name: p, colour: `s${c % 8}`, values: order.map((i) => { const r = rowOf(p, i);
      return r && (r.fits === "true" || state.y === "hbm_peak_bytes") ? valueIn(r, state.y) : null; }) }));
    const anyRow = (i) => here.find((r) => r[state.x] === texts[i] && valueIn(r, "ideal_s") !== null);
    const limit = (name, of) => ({ name, colour: "soft", dash: [5, 4], values: order.map((i) => { const r = anyRow(i); return r ? of(r) : null; }) });
    const stall = (r) => Math.max(0, valueIn(r, "bound.stall_s") || 0);
    if (state.y === "iteration_s") lines.push(limit("lower limit", (r) => valueIn(r, "ideal_s") + stall(r)));
    if (state.y === "stall_s") lines.push(limit("lower limit", stall));
    if (state.y === "slowdown") lines.push(limit("lower limit", (r) => 1 + stall(r) / valueIn(r, "ideal_s")));
    const all = lines.flatMap((l) => l.values).filter((v) => v !== null), yUnit = unitFor(yKind, Math.max(...all, 0));
    const shown = lines.filter((l) => l.values.some((v) => v !== null));
    const how = format[yKind];
    const chart = new Chart(() => ({
      label: `${yName} against ${state.x}, a line a policy.`, height: 320,
      data: [x, ...shown.map((l) => l.values.map((v) => (v === null ? null : v / yUnit[0])))],
      series: shown.map((l) => ({ stroke: colour(l.colour), width: 2, dash: l.dash, points: { show: !l.dash, size: 6, fill: colour(l.colour) } })),
      x: { label: `${state.x}${xUnit[1] ? ` (${xUnit[1]})` : ""}`,
        scale: numeric ? undefined : { range: () => [-0.4, x.length - 0.6] },
        axis: numeric ? { values: (u, ticks) => ticks.map((t) => tick(t)) } : { splits: () => x, values: () => order.map((i) => texts[i]) } },
      y: { label: `${yName}${yUnit[1] ? ` (${yUnit[1]})` : ""}` },
      hint: "Points that don't fit are left out.",
      read: (i) => [`${texts[order[i]]}: `, shown.map((l) => `${l.name} ${how(l.values[i])}`).join(", ")],
    }));
    body.replaceChildren(
      el("ul", { class: "keys" }, shown.map((l) => key(l.colour, l.name, undefined, l.dash ? "line dash" : "line"))),
      chart.node,
      table(`${yName} at each point`, [[state.x, "left"], ...lines.map((l) => l.name)], order.map((i, at) =>
        el("tr", {}, el("th", { scope: "row" }, texts[i]), lines.map((l) => cell(l.values[at], how))))));
    chart.draw();
  };
  const settings = () => {
    // Only combinations that exist: each choice narrows those behind it.
    let left = rows;
    const offered = {};
    for (const a of axes.filter((one) => one !== state.x)) {
      offered[a] = [...new Set(left.map((r) => r[a]))];
      if (!offered[a].includes(state.at[a])) state.at[a] = offered[a][0];
      left = left.filter((r) => r[a] === state.at[a]);
    }
    const pick = (label, options, value, set) => choose(label, options, value, (v) => { set(v); settings(); draw(); });
    tools.replaceChildren(
      pick("Across", xs.map((a) => [a, a]), state.x, (v) => { state.x = v; }),
      pick("Up", metrics.map(([name, text]) => [name, text]), state.y, (v) => { state.y = v; }),
      ...axes.filter((a) => a !== state.x && values(a).length > 1).map((a) => pick(a, offered[a].map((v) => [v, v]), state.at[a], (v) => { state.at[a] = v; })));
  };
  settings();
  const points = new Set(rows.map((r) => axes.map((a) => r[a]).join("\u0000"))).size;
  const grid = axes.reduce((n, a) => n * values(a).length, 1);
  const absent = keys.some((k) => k.startsWith("policies")) ? 0 : points * policies.length - rows.length;
  const holes = [[grid - points, "point"], [absent, "result"]].filter(([n]) => n > 0).map(([n, what]) => counted(n, what)).join(" and ");
  return { node: el("section", { id: "sweep" }, el("h2", {}, "Across the sweep"),
    el("p", { class: "lead" }, `${counted(points, "point")}, ${counted(policies.length, "policy", "policies")}, ${counted(rows.length, "result")}.`),
    holes ? el("p", { class: "say", id: "holes" }, `${holes} of the grid of all axes are missing in this table.`) : null, tools, body), draw, rows, axes: keys, policies };
};

// For each policy how far it gets: where it fits, and its best and worst.
const sweepAnswer = ({ rows, axes, policies }) => {
  const best = (list) => list.reduce((a, b) => (Number(b.iteration_s) < Number(a.iteration_s) ? b : a));
  const place = (r) => axes.map((a) => `${a} = ${r[a]}`).join(", ");
  const all = policies.map((p) => ({ p, of: rows.filter((r) => r.policy === p) })).map((e) => ({ ...e, fit: e.of.filter((r) => r.fits === "true" && r.iteration_s !== "") }));
  const subject = all.find((e) => e.p === "graph") || all[0];
  return el("section", { id: "answer", "aria-label": "The answer" },
    el("p", { class: "verdict" }, subject.fit.length
      ? `${subject.p} fits at ${subject.fit.length === subject.of.length ? "all" : `${subject.fit.length} of`} ${subject.of.length} points; at best ${format.time(Number(best(subject.fit).iteration_s))} per iteration`
      : `${subject.p} fits at none of ${subject.of.length} points`),
    subject.fit.length ? el("p", { class: "say" }, `That is at ${place(best(subject.fit)) || "its only point"}, ${format.factor(Number(best(subject.fit).slowdown))} the ideal time.`) : null,
    table("Where each policy fits, and how fast it is there", [["policy", "left"], "fits at", "fastest", ["at", "left"], "slowest"], all.map(({ p, of, fit }) =>
      el("tr", { "data-policy": p }, el("th", { scope: "row" }, p), el("td", {}, `${fit.length} of ${of.length}`),
        cell(fit.length ? Number(best(fit).iteration_s) : null, format.time), el("td", { class: "left wrapping" }, fit.length ? place(best(fit)) : NONE),
        cell(fit.length ? Math.max(...fit.map((r) => Number(r.iteration_s))) : null, format.time)))));
};
