// Charts by uPlot: they follow the width, the theme and the printer, and the arrow keys.
const charts = new Set();
const axisFont = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// What is shown of x: within the data, and never less than a ten-thousandth of it, where axes have no ticks left.
const shownRange = (first, last, low, high) => {
  if (first === last) return [first - (Math.abs(first) || 1) / 2, last + (Math.abs(first) || 1) / 2];
  const least = (last - first) * 1e-4;
  if (!(high - low >= least)) [low, high] = [(low + high) / 2 - least / 2, (low + high) / 2 + least / 2];
  return [Math.max(first, Math.min(low, last - least)), Math.min(last, Math.max(high, first + least))];
};

class Chart {
  // `make` gives {label, height, data, series, x, y, read(index), lines}: read anew whenever the theme changes.
  constructor(make) {
    this.make = make;
    this.box = el("div", { class: "chart", tabindex: "0", role: "img" });
    this.reading = el("p", { class: "read", "aria-live": "polite" });
    this.node = el("div", {}, this.box, this.reading);
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("blur", () => this.plot && this.plot.setCursor({ left: -10, top: -10 }));
    new ResizeObserver(() => this.resize()).observe(this.box);
    charts.add(this);
  }
  draw() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
    const width = this.box.clientWidth;
    if (!width) return;
    const spec = this.make();
    this.spec = spec;
    this.box.setAttribute("aria-label", `${spec.label} Arrow keys read values, plus and minus zoom, 0 shows all.`);
    const narrow = width < 520, xs = spec.data[0];
    const range = (u, low, high) => (missing(low) || missing(high) ? [0, 1] : shownRange(xs[0], xs[xs.length - 1], low, high));
    const axis = (unit, extra) => ({
      stroke: colour("soft"), font: axisFont, labelFont: axisFont, label: unit, labelSize: 18, labelGap: 0,
      grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("line"), width: 1, size: 5 }, ...extra });
    this.plot = new uPlot({
      width, height: narrow ? Math.min(spec.height, 240) : spec.height, padding: [10, 12, 0, 0],
      cursor: { y: false, sync: spec.sync ? { key: spec.sync, setSeries: false } : undefined,
        drag: { x: true, y: false, setScale: true }, points: { size: 6 } },
      scales: { x: { time: false, range, ...spec.x.scale },
        y: { range: spec.y.range || ((u, low, high) => [0, (high || 1) * 1.06]) } },
      axes: [axis(spec.x.label, { size: 34, space: narrow ? 60 : 80, ...spec.x.axis }),
        axis(spec.y.label, { size: 52, space: 34, values: (u, ticks) => ticks.map((t) => tick(t)), ...spec.y.axis })],
      series: [{}, ...spec.series.map((s) => ({ width: 1.5, points: { show: false }, ...s }))],
      legend: { show: false },
      hooks: {
        setCursor: [(u) => this.say(u.cursor.idx)],
        draw: [(u) => (spec.lines || []).forEach((line) => drawLine(u, line))],
      },
    }, spec.data, this.box);
    this.say(null);
  }
  say(index) {
    const text = missing(index) ? null : this.spec.read(index);
    this.reading.replaceChildren(...(text ? [text] : [el("span", {}, this.spec.hint || "")]).flat());
  }
  resize() {
    const width = this.box.clientWidth;
    if (!width) return;
    if (!this.plot) this.draw();
    else if (Math.abs(this.plot.width - width) > 1)
      this.plot.setSize({ width, height: width < 520 ? Math.min(this.spec.height, 240) : this.spec.height });
  }
  key(e) {
    const u = this.plot;
    if (!u) return;
    const xs = u.data[0], n = xs.length, { min, max } = u.scales.x;
    const move = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -n, End: n }[e.key];
    const zoom = { "+": 0.5, "=": 0.5, "-": 2 }[e.key];
    if (move) {
      const at = missing(u.cursor.idx) ? -1 : u.cursor.idx;
      let to = Math.max(0, Math.min(n - 1, at + move));
      const step = move > 0 ? 1 : -1;
      while (to > 0 && to < n - 1 && xs[to] === xs[at]) to += step;
      u.setCursor({ left: u.valToPos(xs[to], "x"), top: 10 });
    } else if (zoom) {
      const middle = missing(u.cursor.idx) ? (min + max) / 2 : xs[u.cursor.idx], half = ((max - min) * zoom) / 2;
      u.setScale("x", { min: middle - half, max: middle + half });
    } else if (e.key === "0") {
      u.setScale("x", { min: xs[0], max: xs[n - 1] });
    } else {
      return;
    }
    e.preventDefault();
  }
}
const tick = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(6));
};
// A level across the chart, such as a capacity, with its name.
const drawLine = (u, { value, name, stroke }) => {
  const y = Math.round(u.valToPos(value, "y", true)), { left, top, width, height } = u.bbox;
  if (!(y >= top && y <= top + height)) return;
  const { ctx } = u, ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = stroke;
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([6 * ratio, 4 * ratio]);
  ctx.beginPath();
  ctx.moveTo(left, y);
  ctx.lineTo(left + width, y);
  ctx.stroke();
  ctx.font = `${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  ctx.textAlign = "right";
  const above = y - top > 18 * ratio;
  ctx.textBaseline = above ? "bottom" : "top";
  ctx.save();
  ctx.strokeStyle = colour("card");
  ctx.setLineDash([]);
  ctx.lineWidth = 4 * ratio;
  ctx.lineJoin = "round";
  ctx.strokeText(name, left + width - 4 * ratio, y + (above ? -3 : 3) * ratio);
  ctx.restore();
  ctx.fillText(name, left + width - 4 * ratio, y + (above ? -3 : 3) * ratio);
  ctx.restore();
};
const redrawAll = () => charts.forEach((chart) => chart.node.isConnected ? chart.draw() : charts.delete(chart));
const stepped = () => uPlot.paths.stepped({ align: 1 });
const key = (name, label, value, shape = "") =>
  el("li", {}, el("span", { class: `swatch ${shape}`, style: shape ? `border-color: var(--${name})` : `background: var(--${name})` }), label,
    value === undefined ? null : [" ", el("b", {}, value)]);
