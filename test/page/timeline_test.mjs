// A timeline in a real viewer: speedscope, from npm, in headless Chromium. It reads the trace event format's
// slices, process and thread names; counters and flows are checked in test/report/chrome_trace_test.cc.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { openBrowser, run, temporaryFolder, top } from "./browser.mjs";

const folder = temporaryFolder();
const viewer = join(top, "app/report/node_modules/speedscope/dist/release");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
let browser, server, address;

before(async () => {
  const trace = folder.file("trace.json.gz"), common = ["--hardware", "configs/hardware/cloudmatrix384-die.yaml", "--hbm", "40GB", "--iterations", "2", "--policy", "graph"];
  run("trace", "generate", "configs/workloads/llama-3.1-8b-decode.yaml", "-o", trace);
  run("simulate", trace, ...common, "--timeline", folder.file("all.json"));
  run("simulate", trace, ...common, "--timeline", folder.file("part.json.gz"), "--timeline-from", "20ms", "--timeline-to", "30ms",
    "--timeline-npu", "0", "--timeline-min-duration", "20us");
  server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname.slice(1);
    try {
      const body = readFileSync(path.startsWith("run/") ? folder.file(path.slice(4)) : join(viewer, path || "index.html"));
      response.writeHead(200, { "Content-Type": types[extname(path || "x.html")] || "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  address = `http://127.0.0.1:${server.address().port}/`;
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  server?.close();
  folder.remove();
});

// What speedscope shows in its list of profiles: "process NAME, thread NAME".
const tracksIn = async (name) => {
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  const faults = [];
  page.on("console", (m) => m.type() === "error" && faults.push(m.text()));  // its warnings are of WebGL in software
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("dialog", (d) => { faults.push(d.message()); d.dismiss(); });  // how it says that it can't read a file
  await page.goto(`${address}#profileURL=${encodeURIComponent(address + "run/" + name)}`);
  // Its toolbar names the profile shown, with its place: "... (1/4)".
  const shown = page.locator("text=/\\(\\d+\\/\\d+\\)/").first();
  await shown.waitFor({ timeout: 60000 });
  const count = Number((await shown.textContent()).match(/\/(\d+)\)/)[1]);
  const names = [];
  for (let i = 0; i < count; ++i) {
    names.push((await shown.locator("xpath=..").textContent()).replace(/\s*\(\d+\/\d+\)\s*/, ""));
    await page.keyboard.press("n");  // the next profile
    await page.waitForTimeout(50);
  }
  if (process.env.PICTURE) await page.screenshot({ path: `${process.env.PICTURE}/${name}.png` });
  await page.close();
  assert.deepEqual(faults, []);
  return names;
};
const load = (name) => {
  const bytes = readFileSync(folder.file(name));
  return JSON.parse(name.endsWith(".gz") ? gunzipSync(bytes) : bytes);  // JSON.parse takes strict JSON only
};

test("speedscope shows a track for the iterations, each engine and each direction", async () => {
  const names = await tracksIn("all.json");
  for (const track of ["iterations", "compute", "pool -> HBM", "HBM -> pool"])
    assert.ok(names.some((n) => n.includes("NPU 0") && n.includes(track)), `${track} among ${names.join("; ")}`);
});

test("it takes a packed part of a run, too, and nothing else is in that", async () => {
  const names = await tracksIn("part.json.gz");
  assert.ok(names.some((n) => n.includes("compute")), names.join("; "));
  const all = load("all.json").traceEvents, part = load("part.json.gz").traceEvents;
  const slices = part.filter((e) => e.ph === "X");
  const expected = all.filter((e) => e.ph === "X" && e.ts < 30000 && e.ts + e.dur > 20000 && (e.dur > 20.001 || e.cat === "iteration"));
  // A slice may be drawn 1 ns short in one of the two, so those of 20 us +- 1 ns are left aside.
  assert.equal(slices.filter((e) => e.dur > 20.001 || e.cat === "iteration").length, expected.length);
  assert.ok(expected.length > 20 && slices.length < all.filter((e) => e.ph === "X").length / 2);
});

test("times are numbers in us from 0, flow ids unique below 2^53, and each track has a name and a place", () => {
  const events = load("all.json").traceEvents, ids = new Set(), named = new Set();
  for (const e of events) {
    if (e.ph === "M") {
      if (e.name === "thread_name") named.add(`${e.pid} ${e.tid}`);
      continue;
    }
    assert.equal(typeof e.ts, "number");
    assert.ok(e.ts >= 0 && e.ts < 1e6, `two iterations of about 0.1 s end before 1 s: ${e.ts}`);
    if (e.ph === "s") {
      assert.ok(Number.isSafeInteger(e.id) && !ids.has(e.id));
      ids.add(e.id);
    }
    if (e.ph === "X") assert.ok(named.has(`${e.pid} ${e.tid}`), "names come first");
  }
  assert.ok(ids.size > 0);
  assert.equal(Math.min(...events.filter((e) => e.ph === "X").map((e) => e.ts)), 0);
});
