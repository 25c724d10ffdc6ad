// The page of `hyperoffload report` as a person meets it: right figures, no network, phone, print, keyboard.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { openBrowser, openPage, run, temporaryFolder } from "./browser.mjs";

const folder = temporaryFolder();
let browser, results;
const experiment = "configs/experiments/llama-3.1-8b-decode.yaml";
const short = folder.file("short"), page = folder.file("report.html");

before(async () => {
  run("run", experiment, "-o", short, "--set", "hbm=40GB");  // resident does not fit, the others stall
  run("report", short, "-o", page);
  results = JSON.parse(readFileSync(`${short}/results.json`, "utf8")).runs;
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  folder.remove();
});

// A number as shown, back in the unit of the field.
const UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, "%": 0.01 };
const shown = (text) => {
  const [, number, unit] = /^([−-]?[\d.,]+)\s*([^\d\s]*)$/.exec(text.trim()) || [];
  assert.ok(number, `a number: "${text}"`);
  return Number(number.replace("−", "-").replaceAll(",", "")) * (unit in UNITS ? UNITS[unit] : 1);
};
const rowsOf = (p, section) => p.$$eval(`#${section} tr[data-policy]`, (rows) => rows.map((row) => ({
  policy: row.dataset.policy, link: row.dataset.link,
  cells: [...row.querySelectorAll("td[data-value]")].map((c) => ({ exact: Number(c.dataset.value), text: c.textContent })) })));
const compare = (cells, expected, what) => {
  assert.equal(cells.length, expected.length, what);
  expected.forEach((value, i) => {
    assert.equal(cells[i].exact, value, `${what}, number ${i}`);
    // Four significant digits, of which the last may be rounded; percentages have one digit behind the point.
    const rounding = cells[i].text.endsWith("%") ? 5.1e-4 : 6e-4 * Math.abs(value) + 1e-12;
    assert.ok(Math.abs(shown(cells[i].text) - value) <= rounding, `${what}: ${cells[i].text} for ${value}`);
  });
};

test("every figure on the page is that of results.json", async () => {
  const { page: p, faults } = await openPage(browser, page);
  assert.equal((await p.$$("#policies tr[data-policy]")).length, results.length);
  for (const { policy, cells } of await rowsOf(p, "policies")) {
    const r = results.find((one) => one.policy === policy);
    compare(cells, [r.iteration_s, r.slowdown, r.stall_s, r.hbm_peak_bytes, r.pool_peak_bytes, r.pool_to_hbm_bytes, r.hbm_to_pool_bytes,
      r.throughput.tokens_per_s], `policies of ${policy}`);
  }
  for (const { policy, cells } of await rowsOf(p, "stall")) {
    const r = results.find((one) => one.policy === policy), s = r.stalls;
    compare(cells, [r.stall_s, s.late_transfer_s, s.no_room_s, s.hbm_contention_s, s.fabric_contention_s, s.input_room_s, s.host_s, s.other_s, s.per_op.stalled_ops, s.per_op.max_s],
      `stall of ${policy}`);
  }
  for (const { policy, link, cells } of await rowsOf(p, "links")) {
    const r = results.find((one) => one.policy === policy), use = r.links[link];
    compare(cells, [use.transfers, r[`${link}_bytes`], use.busy_s, use.utilisation, use.hidden_s, use.exposed_s], `links of ${policy}`);
  }
  const graph = results.find((r) => r.policy === "graph");
  const verdict = await p.textContent(".verdict");
  assert.match(verdict, /^graph fits in 37\.25 GiB at /);  // 40 GB are 37.25 GiB; it fills them to the last page
  assert.ok(verdict.includes(graph.slowdown.toPrecision(4)), verdict);
  assert.equal(Number(await p.getAttribute("#series-peak", "data-value")), graph.hbm_peak_bytes);
  assert.deepEqual(faults, []);
  await p.close();
});

test("an arrow in a sentence is one character, which no line's end parts", async () => {
  const { page: p } = await openPage(browser, page);
  for (const text of [await p.textContent("#links ul.plain"), await p.textContent("#answer")]) {
    assert.match(text, /pool → HBM/);
    assert.doesNotMatch(text, /->/);
  }
  await p.close();
});

test("the longest waits say what was waited for, and what that waited for", async () => {
  const { page: p } = await openPage(browser, page);
  const worst = results.find((r) => r.policy === "graph").stalls.worst;
  const rows = await p.$$eval("#stall h3 ~ div tbody tr", (all) => all.map((row) => [...row.children].map((c) => c.textContent)));
  assert.equal(rows.length, worst.length);
  rows.forEach(([op, waited, , what, held], i) => {
    assert.equal(op, worst[i].op);
    assert.ok(Math.abs(shown(waited) - worst[i].wait_s) <= 6e-4 * worst[i].wait_s);
    if (worst[i].tensor) assert.ok(what.includes(worst[i].tensor), what);
    if (worst[i].held_by_name && worst[i].held_by_name !== worst[i].tensor) assert.ok(held.includes(worst[i].held_by_name), held);
  });
  await p.close();
});

test("a phone doesn't scroll sideways, in either theme", async () => {
  for (const width of [320, 390])
    for (const colorScheme of ["light", "dark"]) {
      const { page: p, faults } = await openPage(browser, page, { viewport: { width, height: 800 }, colorScheme });
      assert.ok((await p.evaluate(() => document.documentElement.scrollWidth)) <= width, `${width} px`);
      const paper = await p.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [red] = paper.match(/\d+/g).map(Number);
      assert.equal(red > 128, colorScheme === "light", paper);
      assert.deepEqual(faults, []);
      await p.close();
    }
});

test("it prints on white paper, all sections", async () => {
  const { page: p } = await openPage(browser, page, { colorScheme: "dark" });
  await p.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await p.emulateMedia({ media: "print" });
  assert.equal(await p.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.ok((await p.pdf({ format: "A4" })).length > 10000);
  // Nothing is wider than A4 between its margins (210 - 24 mm), charts drawn for a wider screen included.
  await p.setViewportSize({ width: Math.floor((210 - 24) / 25.4 * 96), height: 900 });
  // Charts follow the width when the browser has drawn again.
  await p.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth, null, { timeout: 10000 }).catch(() => {});
  const [wide, ...charts] = await p.evaluate(() => [document.documentElement.scrollWidth - innerWidth,
    ...[...document.querySelectorAll("canvas")].map((c) => c.getBoundingClientRect().right - innerWidth)]);
  assert.ok(wide <= 0, `${wide} px beyond the paper`);
  assert.ok(charts.length >= 4 && charts.every((beyond) => beyond <= 0), `charts ${charts} px beyond the paper`);
  await p.close();
});

test("axes of a sweep that step together are one", async () => {
  const sweep = folder.file("zipped"), lines = readFileSync(`${short}/results.csv`, "utf8").trim().split("\n");
  mkdirSync(sweep);
  const rows = ["1GB/s,10GB/s", "2GB/s,20GB/s"].flatMap((axes) => lines.slice(1).map((line) => `${axes},${line}`));
  writeFileSync(`${sweep}/results.csv`, [`read,write,${lines[0]}`, ...rows].join("\n") + "\n");
  run("report", sweep);
  const { page: p, faults } = await openPage(browser, `${sweep}/report.html`);
  assert.deepEqual(await p.$$eval("#sweep select >> nth=0", (s) => [...s[0].options].map((o) => o.textContent)), ["read + write"]);
  assert.equal(await p.locator("#sweep select").count(), 2);  // across, up: nothing is left to choose
  assert.deepEqual(await p.$$eval("#sweep tbody tr", (all) => all.map((r) => r.firstChild.textContent)), ["1GB/s", "2GB/s"]);
  assert.deepEqual(faults, []);
  await p.close();
});

test("charts read out by keyboard, have names, and stand beside tables", async () => {
  const { page: p, faults } = await openPage(browser, page);
  const charts = await p.$$(".chart");
  assert.equal(charts.length, 4);
  for (const chart of charts) {
    assert.ok((await chart.getAttribute("aria-label")).length > 40);
    await chart.focus();
    await p.keyboard.press("ArrowRight");
    await p.keyboard.press("ArrowRight");
    const text = await chart.evaluate((c) => c.nextElementSibling.textContent);
    assert.match(text, /^(at|from) [\d.]+ (ns|µs|ms|s)/);
    await p.keyboard.press("+");
    await p.keyboard.press("0");
  }
  const unnamed = await p.$$eval("table", (all) => all.filter((t) => !t.caption?.textContent).length);
  assert.equal(unnamed, 0);
  await p.focus("#time summary");
  await p.keyboard.press("Enter");
  await p.waitForSelector("#time details tbody tr");  // written when the details open
  const rows = await p.$$eval("#time details tbody tr", (all) => all.map((r) => Number(r.querySelector("td").dataset.value)));
  assert.equal(rows.length, 20);
  assert.equal(Math.max(...rows), results.find((r) => r.policy === "graph").hbm_peak_bytes);
  await p.selectOption("#time select", "on_demand");
  assert.equal(Number(await p.getAttribute("#series-peak", "data-value")), results.find((r) => r.policy === "on_demand").hbm_peak_bytes);
  assert.deepEqual(faults, []);
  await p.close();
});

test("the frontier of HBM and time stands beside its bound", async () => {
  const curve = folder.file("curve");
  mkdirSync(curve);
  const point = (hbm_bytes, iteration_s, least) => ({ hbm_bytes, hbm_peak_bytes: hbm_bytes, iteration_s, ideal_s: 0.5, stall_s: iteration_s - 0.5,
    pool_to_hbm_bytes: 7, hbm_to_pool_bytes: 9, bound: { stall_s: least, method: "window" } });
  const points = [point(2 ** 31, 0.75, 0.125), point(2 ** 30, 1.5, 0.25), point(2 ** 32, 0.5, 0)];
  writeFileSync(`${curve}/frontier.json`, JSON.stringify({ format: "hyperoffload-frontier", version: 1, trace: results[0].trace, hardware: results[0].hardware, iterations: 1, points }));
  writeFileSync(`${curve}/results.json`, JSON.stringify({ runs: results }));
  run("report", curve);
  const { page: p, faults } = await openPage(browser, `${curve}/report.html`);
  const rows = await p.$$eval("#frontier tbody tr", (all) => all.map((r) => [...r.querySelectorAll("td")].map((c) => Number(c.dataset.value))));
  assert.deepEqual(rows, [[1.5, 3, 1, 0.25, 2 ** 30, 7, 9], [0.75, 1.5, 0.25, 0.125, 2 ** 31, 7, 9], [0.5, 1, 0, 0, 2 ** 32, 7, 9]]);
  await p.focus("#frontier .chart");
  await p.keyboard.press("ArrowRight");
  assert.equal(await p.textContent("#frontier .read"), "1.000 GiB: 1.500 s, limit 750.0 ms");
  assert.deepEqual(faults, []);
  await p.close();
});

test("names from a file stay text", async () => {
  const evil = folder.file("evil");
  mkdirSync(evil);
  const name = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\"><!--";
  const runs = structuredClone(results);
  for (const r of runs) r.trace = name;
  writeFileSync(`${evil}/results.json`, JSON.stringify({ runs }));
  run("report", evil);
  const { page: p, faults } = await openPage(browser, `${evil}/report.html`);
  assert.equal(await p.textContent("h1"), name);
  assert.notEqual(await p.title(), "taken");
  assert.ok((await p.textContent("#time")).includes("no POLICY.series.json"));
  assert.deepEqual(faults, []);
  await p.close();
});

test("a sweep is drawn along the chosen axes, with the figures of results.csv", async () => {
  const sweep = folder.file("sweep"), rows = [];
  mkdirSync(sweep);
  let head;
  for (const hbm of ["44GB", "40GB"]) {
    const lines = hbm === "40GB" ? readFileSync(`${short}/results.csv`, "utf8").trim().split("\n") : (() => {
      run("run", experiment, "-o", folder.file(hbm), "--set", `hbm=${hbm}`);
      return readFileSync(`${folder.file(hbm)}/results.csv`, "utf8").trim().split("\n");
    })();
    head = lines[0];
    rows.push(...lines.slice(1).map((line) => `${hbm},${line}`));
  }
  writeFileSync(`${sweep}/results.csv`, [`hbm,${head}`, ...rows].join("\n") + "\n");
  run("report", sweep);
  const { page: p, faults } = await openPage(browser, `${sweep}/report.html`);
  const read = () => p.$$eval("#sweep tbody tr", (all) => all.map((r) => [r.firstChild.textContent, ...[...r.querySelectorAll("td")].map((c) => c.dataset.value)]));
  const at40 = (policy, field) => String(results.find((r) => r.policy === policy)[field]);
  let table = await read();
  assert.deepEqual(table.map((r) => r[0]), ["40GB", "44GB"]);  // by value, not by place
  assert.deepEqual(table[0].slice(1, 4), [undefined, at40("on_demand", "iteration_s"), at40("graph", "iteration_s")]);  // resident does not fit
  await p.selectOption("#sweep select >> nth=1", "hbm_peak_bytes");
  table = await read();
  assert.equal(table[0][3], at40("graph", "hbm_peak_bytes"));
  assert.deepEqual(faults, []);
  await p.close();
});

// results.csv of a sweep: the columns' names, a line of values for each point.
const writeSweep = (name, axes, points, lose = 0) => {
  const [head, ...lines] = readFileSync(`${short}/results.csv`, "utf8").trim().split("\n"), at = folder.file(name);
  mkdirSync(at);
  const rows = points.flatMap((p) => lines.map((line) => `${p},${line}`));
  writeFileSync(`${at}/results.csv`, [`${axes},${head}`, ...rows.slice(0, rows.length - lose)].join("\n") + "\n");
  run("report", at);
  return `${at}/report.html`;
};
const firstColumn = (p) => p.$$eval("#sweep tbody tr", (all) => all.map((r) => r.firstChild.textContent));
const optionsOf = (p, label) => p.$$eval("#sweep .tools label", (all, name) => all.filter((l) => l.firstChild.textContent === name)
  .flatMap((l) => [...l.querySelectorAll("option")].map((o) => o.textContent)), label);

test("zipped axes are one axis, all of whose points are drawn", async () => {
  const grid = ["44GB", "40GB"].flatMap((hbm) => ["1,1", "8,2", "8,4"].map((zip) => `${hbm},${zip}`));
  const { page: p, faults } = await openPage(browser, writeSweep("zip", "hbm,batch,tp", grid));
  assert.deepEqual(await optionsOf(p, "Across"), ["hbm", "batch + tp"]);
  assert.deepEqual(await optionsOf(p, "batch + tp"), ["1", "2", "4"]);
  await p.selectOption("#sweep select >> nth=0", "batch + tp");
  assert.deepEqual(await firstColumn(p), ["1", "2", "4"]);
  assert.deepEqual(await optionsOf(p, "hbm"), ["44GB", "40GB"]);
  assert.equal(await p.$("#holes"), null);
  assert.ok((await p.textContent("#sweep .lead")).startsWith(`6 points, ${results.length} policies, ${6 * results.length} results`));
  assert.deepEqual(faults, []);
  await p.close();
});

test("only combinations that exist can be chosen, and what is missing in a grid is said", async () => {
  // Of a 2 x 2 x 2 grid the point b, 8, y is missing, and of the last one a result.
  const all = ["a,4,x", "a,4,y", "a,8,x", "a,8,y", "b,4,x", "b,4,y", "b,8,x"];
  const { page: p, faults } = await openPage(browser, writeSweep("holes", "name,batch,end", all, 1));
  assert.match(await p.textContent("#holes"), /^1 point and 1 result of the grid/);
  await p.selectOption("#sweep select >> nth=0", "end");
  await p.selectOption("#sweep select >> nth=2", "b");
  await p.selectOption("#sweep select >> nth=3", "8");
  assert.deepEqual(await firstColumn(p), ["x"]);
  await p.selectOption("#sweep select >> nth=0", "batch");
  await p.selectOption("#sweep select >> nth=3", "y");
  assert.deepEqual(await firstColumn(p), ["4"]);
  assert.deepEqual(faults, []);
  await p.close();
});

test("zooming has an end, in and out, on every chart, even with one point", async () => {
  for (const path of [page, writeSweep("one", "hbm", ["40GB"])]) {
    const { page: p, faults } = await openPage(browser, path);
    for (const chart of await p.$$(".chart")) {
      await chart.focus();
      for (const key of ["-", "+", "0"]) for (let i = 0; i < 60; ++i) await p.keyboard.press(key);
      await p.keyboard.press("ArrowRight");
      await p.keyboard.press("ArrowRight");
      for (const key of ["+", "-"]) for (let i = 0; i < 60; ++i) await p.keyboard.press(key);
    }
    await p.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.deepEqual(faults, []);
    await p.close();
  }
});
