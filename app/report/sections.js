const CAUSES = [["late_transfer", "bytes arrived late"], ["no_room", "no room in HBM"], ["hbm_contention", "HBM bandwidth shared"],
  ["fabric_contention", "fabric shared"],
  ["input_room", "no room for inputs"], ["host", "the host decides"], ["other", "other"]];
const LATE = [["carrying", "on the link"], ["latency", "latency"], ["link_busy", "behind other transfers"],
  ["room", "for room"], ["held_back", "not issued yet"]];
const causeColour = (name) => (name === "other" ? "other_stall" : name);
const withFigures = (runs) => runs.filter((r) => r.iteration_s !== null);

// `graph` where it is among them, else the fastest that fits, else the first.
const subjectOf = (runs) => {
  const graph = runs.find((r) => r.policy === "graph" || r.policy.startsWith("graph:"));
  const fit = withFigures(runs).filter((r) => r.fits).sort((a, b) => a.iteration_s - b.iteration_s);
  return graph || fit[0] || runs[0];
};
const tile = (name, value, how, small) =>
  el("div", { class: "tile" }, el("dt", {}, name),
    el("dd", { "data-value": missing(value) ? null : String(value) }, how(value), small ? el("small", {}, small) : null));

const verdictOf = (r) => {
  const bound = r.bound ? `; bound ${format.bytes(r.bound.hbm_peak_bytes)}` : "";
  if (r.iteration_s === null) return `${r.policy} can't run`;
  if (!r.fits) return `${r.policy} does not fit: it takes ${format.bytes(r.hbm_peak_bytes)}, ${format.bytes(r.hbm_capacity_bytes - r.hbm_reserved_bytes)} are there${bound}`;
  const speed = r.stall_s <= 1e-9 * r.ideal_s ? "at the ideal time" : `at ${format.more(r.slowdown)}${r.slowdown >= 2 ? " the ideal time" : ""}`;
  return `${r.policy} fits in ${format.bytes(r.hbm_peak_bytes)} ${speed}${bound}`;
};
const throughputTile = (t) => {
  if (!t) return null;
  if (t.tokens_per_s !== null) return tile("Tokens/s", t.tokens_per_s, format.number,
    t.model_flops_utilisation !== null ? `${format.percent(t.model_flops_utilisation)} of peak FLOPs` : null);
  if (t.samples_per_s !== null) return tile("Samples/s", t.samples_per_s, format.number);
  return null;
};
const answerSection = (data) => {
  const r = data.runs.find((run) => run.policy === data.subject);
  const tiles = r.iteration_s === null ? [] : [
    tile("Iteration", r.iteration_s, format.time, `ideal ${format.time(r.ideal_s)}`),
    tile("Stall", r.stall_s, format.time, r.bound ? `bound ${format.time(Math.max(0, r.bound.stall_s))}` : null),
    tile("Peak HBM", r.hbm_peak_bytes, format.bytes, `of ${format.bytes(r.hbm_capacity_bytes - r.hbm_reserved_bytes)}`),
    tile("Pool", r.pool_peak_bytes, format.bytes, `of ${format.bytes(r.pool_capacity_bytes)}`),
    tile("Moved", r.pool_to_hbm_bytes, format.bytes, `in; ${format.bytes(r.hbm_to_pool_bytes)} out`),
    throughputTile(r.throughput)];
  return el("section", { id: "answer", "aria-label": "The answer" },
    el("p", { class: "verdict" }, verdictOf(r)),
    r.reason ? el("p", { class: "say" }, r.reason) : null,
    el("dl", { class: "tiles" }, tiles),
    data.answer.split("\n").filter(Boolean).map((line) => el("p", { class: "say" }, prose(line))));
};

const timeBar = (r, longest) =>
  el("td", { class: "barcell" }, el("div", { class: "bar", role: "img",
    "aria-label": `ideal ${format.time(r.ideal_s)}, ` + CAUSES.filter(([c]) => r.stalls[`${c}_s`] > 0).map(([c, n]) => `${n} ${format.time(r.stalls[`${c}_s`])}`).join(", ") },
    [["ideal", r.ideal_s], ...CAUSES.map(([c]) => [causeColour(c), Math.max(0, r.stalls[`${c}_s`])])].map(([name, value]) =>
      el("i", { style: `width: ${(value / longest) * 100}%; background: var(--${name})` }))));
const policiesSection = (data) => {
  const runs = data.runs, longest = Math.max(...withFigures(runs).map((r) => r.iteration_s)), rows = [];
  const tokens = withFigures(runs).some((r) => r.throughput.tokens_per_s !== null);
  for (const r of runs) {
    const none = r.iteration_s === null;
    rows.push(el("tr", { class: r.reason ? "noted" : null, "data-policy": r.policy }, el("th", { scope: "row" }, r.policy),
      el("td", {}, el("span", { class: `pill ${r.fits ? "yes" : "no"}` }, r.fits ? "fits" : "no")),
      cell(r.iteration_s, format.time), cell(r.slowdown, format.factor), none ? el("td", {}, NONE) : timeBar(r, longest),
      cell(r.stall_s, format.time), cell(r.hbm_peak_bytes, format.bytes), cell(r.pool_peak_bytes, format.bytes),
      cell(r.pool_to_hbm_bytes, format.bytes), cell(r.hbm_to_pool_bytes, format.bytes),
      tokens ? cell(none ? null : r.throughput.tokens_per_s, format.number) : null));
    if (r.reason) rows.push(el("tr", { class: "note" }, el("td", { colspan: "11" }, r.reason)));
  }
  const used = CAUSES.filter(([c]) => withFigures(runs).some((r) => r.stalls[`${c}_s`] > 0));
  const bound = (runs.find((r) => r.policy === data.subject) || runs[0]).bound;
  return el("section", { id: "policies" }, el("h2", {}, "Policies side by side"),
    el("p", { class: "lead" }, "One iteration: the time it takes at best, and what it waits for on top."),
    el("ul", { class: "keys" }, key("ideal", "ideal"), used.map(([c, n]) => key(causeColour(c), n))),
    table(runs[0].iterations > 1 ? `The last of ${runs[0].iterations} iterations` : "The only iteration", [["policy", "left"], "", "time", "of ideal", ["", "left"], "stall", "peak HBM", "pool", "moved in", "moved out", ...(tokens ? ["tokens/s"] : [])], rows),
    bound ? el("p", { class: "say" }, `Proven for every plan (${bound.method}, ${bound.order === "as given" ? "the program as given" : `${bound.order} order`}): without stall it takes at least `,
      el("b", { "data-value": bound.hbm_peak_bytes }, format.bytes(bound.hbm_peak_bytes)), " of HBM; at this capacity the stall is at least ",
      el("b", { "data-value": bound.stall_s }, format.time(Math.max(0, bound.stall_s))),
      bound.steady_stall_s > bound.stall_s ? [", of iterations that end as they began at least ",
        el("b", { "data-value": bound.steady_stall_s }, format.time(bound.steady_stall_s))] : null, ".") : null);
};

const causeWords = (w) => (CAUSES.find(([c]) => c === w.cause) || [0, w.cause])[1];
const blameWords = (w) => {
  if (w.cause === "no_room" || w.cause === "input_room")
    return w.short_bytes !== null ? `${format.bytes(w.short_bytes)} of HBM were missing` : "room in HBM was missing";
  if (w.cause === "fabric_contention") return "transfers and other collectives used its ports meanwhile";
  if (w.cause === "hbm_contention") return "copies and other ops used HBM bandwidth meanwhile";
  return w.tensor ? `${w.tensor}${w.bytes !== null ? ` (${format.bytes(w.bytes)})` : ""}` : "bytes it reads";
};
const heldWords = (w) => {
  if (w.cause !== "late_transfer") return NONE;
  if (w.held_by === "transfer" && w.held_by_name === w.tensor) return "another piece of it, ahead on the link";
  if (w.held_by === "transfer") return `the transfer of ${w.held_by_name}, ahead on the link`;
  if (w.held_by === "room") return `room: ${w.short_bytes !== null ? format.bytes(w.short_bytes) : "bytes"} were missing`;
  if (w.held_by === "op") return `op ${w.held_by_name}, issued when it was done`;
  return "nothing: it could not start before";
};
const stallSection = (data) => {
  const runs = withFigures(data.runs), worst = Math.max(...runs.map((r) => r.stall_s), 0);
  if (worst <= 0)
    return el("section", { id: "stall" }, el("h2", {}, "What it waits for"), el("p", { class: "lead" }, "No policy stalls: every iteration takes its ideal time."));
  const rows = runs.map((r) => el("tr", { "data-policy": r.policy }, el("th", { scope: "row" }, r.policy), cell(r.stall_s, format.time),
    CAUSES.map(([c]) => cell(r.stalls[`${c}_s`], format.time)), cell(r.stalls.per_op.stalled_ops, format.count),
    cell(r.stalls.per_op.max_s, format.time)));
  const late = runs.map((r) => el("tr", { "data-policy": r.policy }, el("th", { scope: "row" }, r.policy), cell(r.stalls.late_transfer_s, format.time),
    LATE.map(([c]) => cell(r.stalls.late_transfer[`${c}_s`], format.time))));
  const stalled = runs.filter((r) => r.stalls.worst.length);
  let policy = (stalled.find((r) => r.policy === data.subject) || stalled[0] || runs[0]).policy;
  const body = el("div");
  const draw = () => {
    const r = runs.find((run) => run.policy === policy);
    body.replaceChildren(table(`The longest waits of ${policy}: an op's bytes come in time if their transfer starts that much earlier`,
      [["op", "left"], "waited", ["because", "left"], ["for", "left"], ["which waited for", "left"], "start earlier by"],
      r.stalls.worst.map((w) => el("tr", {}, el("th", { scope: "row" }, w.op), cell(w.wait_s, format.time), el("td", { class: "left" }, causeWords(w)),
        el("td", { class: "left wrapping" }, blameWords(w)), el("td", { class: "left wrapping" }, heldWords(w)),
        w.cause === "late_transfer" && w.transfer_start_s !== null ? cell(w.wait_s, format.time) : el("td", {}, NONE)))));
  };
  draw();
  return el("section", { id: "stall" }, el("h2", {}, "What it waits for"),
    el("p", { class: "lead" }, "Stall by cause; the causes add up to it. A wait hidden by another engine's work counts nothing."),
    table("Stall by cause", [["policy", "left"], "stall", ...CAUSES.map(([, n]) => n), "ops that stall", "longest"], rows),
    lazy("Why the bytes arrived late", () => table("Bytes that arrived late, by what their transfer did meanwhile", [["policy", "left"], "late", ...LATE.map(([, n]) => n)], late)),
    stalled.length ? [el("h3", {}, "Who is to blame"),
      el("div", { class: "tools" }, choose("Policy", stalled.map((r) => [r.policy, r.policy]), policy, (v) => { policy = v; draw(); })), body] : null);
};

const linksSection = (data) => {
  const rows = withFigures(data.runs).flatMap((r) => [["pool_to_hbm", "pool → HBM"], ["hbm_to_pool", "HBM → pool"]].map(([d, name]) =>
    el("tr", { "data-policy": r.policy, "data-link": d }, el("th", { scope: "row" }, r.policy), el("td", { class: "left" }, name), cell(r.links[d].transfers, format.count),
      cell(r[`${d}_bytes`], format.bytes), cell(r.links[d].busy_s, format.time), cell(r.links[d].utilisation, format.percent),
      cell(r.links[d].hidden_s, format.time), cell(r.links[d].exposed_s, format.time))));
  const binding = withFigures(data.runs).filter((r) => r.binding && r.binding.sentence);
  return el("section", { id: "links" }, el("h2", {}, "Transfers, and what binds"),
    table("Each way, over one iteration: hidden is the time with an op running meanwhile", [["policy", "left"], ["direction", "left"], "transfers", "bytes", "under way", "of the time", "hidden", "exposed"], rows),
    el("h3", {}, "What binds"),
    el("ul", { class: "plain" }, binding.map((r) => el("li", {}, el("b", {}, r.policy), `: ${prose(r.binding.sentence)}`))));
};

// What is within rounding is nothing.
const extra = (r) => {
  const more = r.first_iteration_s - r.iteration_s;
  return Math.abs(more) <= 1e-12 * r.total_s ? 0 : more;
};
const warmSection = (data) => {
  const runs = withFigures(data.runs);
  if (!runs.length || runs[0].iterations < 2) return null;
  return el("section", { id: "warm" }, el("h2", {}, "Warming up"),
    el("p", { class: "lead" }, "The first iteration starts cold; this is what it costs on top of a later one."),
    table("First iteration against the last", [["policy", "left"], "first", "last", "extra", "extra", "all iterations"],
      runs.map((r) => el("tr", { "data-policy": r.policy }, el("th", { scope: "row" }, r.policy), cell(r.first_iteration_s, format.time), cell(r.iteration_s, format.time),
        cell(extra(r), (v) => (v < 0 ? `−${format.time(-v)}` : format.time(v))), cell(extra(r) / r.iteration_s, (v) => format.percent(v).replace("-", "−")), cell(r.total_s, format.time)))));
};

const npusSection = (data) => {
  const run = data.runs.find((r) => r.policy === data.subject);
  if (!run.npus || run.npus.length < 2) return null;
  const all = run.npus.slice().sort((a, b) => b.iteration_s - a.iteration_s || a.npu - b.npu), shown = all.slice(0, 16);
  return el("section", { id: "npus" }, el("h2", {}, "NPUs"),
    el("p", { class: "lead" }, `${run.policy} on ${all.length} NPUs: ${shown.length < all.length ? "the 16 slowest, slowest first" : "slowest first"}.`),
    table("Figures of each NPU", [["NPU", "left"], "time", "stall", "peak HBM", "moved in", "moved out"], shown.map((n) =>
      el("tr", {}, el("th", { scope: "row" }, String(n.npu)), cell(n.iteration_s, format.time), cell(n.stall_s, format.time), cell(n.hbm_peak_bytes, format.bytes),
        cell(n.pool_to_hbm_bytes, format.bytes), cell(n.hbm_to_pool_bytes, format.bytes)))));
};
