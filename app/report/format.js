// Numbers as the terminal shows them (sim/report/human.cc): four significant digits and a unit that suits.
const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0);
};
const scaled = (value, step, units) => {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= step * 0.99995) {
    value /= step;
    ++unit;
  }
  return `${digits(value)} ${units[unit]}`;
};
const missing = (value) => value === null || value === undefined || !Number.isFinite(value);
const NONE = "–";
const format = {
  number: (v) => (missing(v) ? NONE : digits(v)),
  count: (v) => (missing(v) ? NONE : String(v).replace(/\B(?=(\d{3})+$)/g, ",")),
  time: (v) => (missing(v) ? NONE : Math.abs(v) < 1e-12 ? "0 s" : scaled(v * 1e9, 1000, ["ns", "µs", "ms", "s"])),
  bytes: (v) => missing(v) ? NONE
    : Math.abs(v) < 1024 ? `${v} B` : scaled(v / 1024, 1024, ["KiB", "MiB", "GiB", "TiB", "PiB"]),
  rate: (v) => (missing(v) ? NONE : scaled(v / 1e3, 1000, ["kB/s", "MB/s", "GB/s", "TB/s"])),
  percent: (share) => {
    if (missing(share)) return NONE;
    const percent = share * 100, size = Math.abs(percent);
    return percent === 0 ? "0 %" : `${percent.toFixed(size < 0.0995 ? 3 : size < 9.995 ? 2 : 1)} %`;
  },
  factor: (v) => (missing(v) ? "–" : `${digits(v)}×`),
  more: (slowdown) => {  // "+0.3 %", "2.3 times" for what is far above
    if (missing(slowdown)) return "far above";
    if (slowdown >= 2) return `${digits(slowdown)} times`;
    return `${slowdown >= 1 ? "+" : "−"}${((Math.abs(slowdown - 1)) * 100).toFixed(1)} %`;
  },
};
const counted = (n, thing, plural = `${thing}s`) => `${format.count(n)} ${n === 1 ? thing : plural}`;
// One unit for a whole axis or column: [divisor, name].
const timeUnit = (largest) =>
  largest >= 1 ? [1, "s"] : largest >= 1e-3 ? [1e-3, "ms"] : largest >= 1e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
const bytesUnit = (largest) => {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (unit + 1 < names.length && largest >= 1024 ** (unit + 1)) ++unit;
  return [1024 ** unit, names[unit]];
};
const rateUnit = (largest) =>
  largest >= 1e12 ? [1e12, "TB/s"] : largest >= 1e9 ? [1e9, "GB/s"] : largest >= 1e6 ? [1e6, "MB/s"] : [1e3, "kB/s"];

// A sentence as a terminal shows it: a line may end within its arrows.
const prose = (text) => text.replaceAll(" -> ", " → ");
// Elements. Text is always text: nothing from a file becomes markup.
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") node.style.cssText = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(2))
    if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
};
// A number in a table: as people read it, with the exact one at hand.
const cell = (value, how, attributes = {}) =>
  el("td", { "data-value": missing(value) ? null : String(value), title: missing(value) ? null : String(value), ...attributes }, how(value));
const table = (caption, heads, rows) =>
  el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((h) => typeof h === "string" ? el("th", { scope: "col" }, h)
        : el("th", { scope: "col", class: h[1] }, h[0])))),
      el("tbody", {}, rows)));
const choose = (label, options, value, change) => {
  const select = el("select", { onchange: () => change(select.value) },
    options.map(([v, text]) => el("option", { value: v, selected: v === value }, text)));
  return el("label", {}, label, select);
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
