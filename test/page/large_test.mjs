// A run of 125,000 ops, which is about a million events of a timeline: the page stays small and quick, and says
// that it sums up.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { openBrowser, openPage, run, temporaryFolder, top } from "./browser.mjs";

const folder = temporaryFolder(), ops = 125000, out = folder.file("out");
let browser;

before(async () => {
  execFileSync("/usr/bin/python3", [join(top, "scripts/synthetic_trace.py"), String(ops), folder.file("trace.json")]);
  // Two thirds of the weights' 12.5 GB fit.
  writeFileSync(folder.file("large.yaml"), `name: large\nhardware: ${top}/configs/hardware/cloudmatrix384-die.yaml\nworkload: {trace: trace.json}\n` +
    "hbm: 8GB\niterations: 1\npolicies: [on_demand]\n");
  run("run", folder.file("large.yaml"), "-o", out);
  run("report", out);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  folder.remove();
});

test("the page of a run of a million events is small, opens at once, and says what it sums up", async () => {
  const series = JSON.parse(readFileSync(`${out}/on_demand.series.json`, "utf8")), { memory, use } = series.iterations[0];
  const result = JSON.parse(readFileSync(`${out}/results.json`, "utf8")).runs[0];
  assert.ok(memory.changes > 10000 && memory.time_s.length <= 2 * 1024 && use.pool_to_hbm_bytes.length <= 1024);
  assert.equal(Math.max(...memory.hbm_bytes), result.hbm_peak_bytes);
  assert.equal(Math.max(...memory.pool_bytes), result.pool_peak_bytes);
  memory.hbm_bytes.forEach((sum, i) => assert.equal(Object.values(memory.hbm_bytes_by_kind).reduce((a, kind) => a + kind[i], 0), sum));
  const carried = use.pool_to_hbm_bytes.reduce((a, b) => a + b);
  assert.ok(Math.abs(carried - result.pool_to_hbm_bytes) <= 1e-9 * carried + 1);
  const idle = result.iteration_s - use.engine_busy_s.compute.reduce((a, b) => a + b);
  assert.ok(Math.abs(idle - (result.stall_s - result.stalls.hbm_contention_s)) <= 1e-6 * result.iteration_s, `one engine stalls while it is idle: ${idle}`);

  assert.ok(statSync(`${out}/report.html`).size < 1e6);
  const began = performance.now();
  const { page, faults } = await openPage(browser, `${out}/report.html`);
  assert.ok(performance.now() - began < 10000);  // a busy machine; 0.3 s on an idle one
  const said = await page.textContent("#aggregated");
  assert.match(said, /^125,000 ops, [\d,]+ changes of memory in [\d,]+ points: changes within .* peaks are exact/);
  assert.equal(Number(await page.getAttribute("#series-peak", "data-value")), result.hbm_peak_bytes);
  assert.deepEqual(faults, []);
  await page.close();
});
