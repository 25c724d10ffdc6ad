// HBM against time, as `plan --frontier` found it, with the limit that no plan can beat.
const frontierSection = (data) => {
  const frontier = data.frontier;
  if (!frontier || !frontier.points.length) return null;
  const points = frontier.points.slice().sort((a, b) => a.hbm_bytes - b.hbm_bytes);
  const bytes = bytesUnit(points[points.length - 1].hbm_bytes), time = timeUnit(Math.max(...points.map((p) => p.iteration_s)));
  const limit = points.map((p) => p.ideal_s + Math.max(0, p.bound.stall_s));
  const chart = new Chart(() => ({
    label: "Time per iteration against HBM: planned, and the proven limit.", height: 300,
    data: [points.map((p) => p.hbm_bytes / bytes[0]), points.map((p) => p.iteration_s / time[0]), limit.map((v) => v / time[0])],
    series: [{ stroke: colour("s0"), width: 2, points: { show: true, size: 6, fill: colour("s0") } }, { stroke: colour("soft"), width: 2, dash: [5, 4] }],
    x: { label: `HBM (${bytes[1]})`, axis: { values: (u, ticks) => ticks.map((t) => tick(t)) } },
    y: { label: `time per iteration (${time[1]})` },
    read: (i) => [`${format.bytes(points[i].hbm_bytes)}: `, el("b", {}, format.time(points[i].iteration_s)), `, limit ${format.time(limit[i])}`],
  }));
  return { node: el("section", { id: "frontier" }, el("h2", {}, "HBM against time"),
    el("p", { class: "lead" }, "How much slower an iteration gets with less HBM, as planned, and the limit that no plan can beat."),
    el("ul", { class: "keys" }, key("s0", "planned", undefined, "line"), key("soft", "proven limit", undefined, "line dash")), chart.node,
    table("Each capacity that was planned for", [["HBM", "left"], "time", "of ideal", "stall", "stall at least", "peak HBM", "moved in", "moved out"], points.map((p) =>
      el("tr", {}, el("th", { scope: "row" }, format.bytes(p.hbm_bytes)), cell(p.iteration_s, format.time), cell(p.iteration_s / p.ideal_s, format.factor),
        cell(p.stall_s, format.time), cell(p.bound.stall_s, (v) => format.time(Math.max(0, v))), cell(p.hbm_peak_bytes, format.bytes),
        cell(p.pool_to_hbm_bytes, format.bytes), cell(p.hbm_to_pool_bytes, format.bytes))))), draw: () => chart.draw() };
};
