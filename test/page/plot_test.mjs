// scripts/plot.py: figures from what `run` writes, and one sentence for wrong input.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { run, temporaryFolder, top } from "./browser.mjs";

const folder = temporaryFolder(), out = folder.file("run"), sweep = folder.file("sweep");
const zipped = folder.file("zipped"), grid = folder.file("grid");
const script = join(top, "scripts/plot.py");
const plot = (...args) => spawnSync(script, args, { encoding: "utf8" });
const skip = spawnSync("/usr/bin/python3", ["-c", "import matplotlib"]).status !== 0 && "python3-matplotlib is not installed";

before(() => {
  if (skip) return;
  run("run", "configs/experiments/llama-3.1-8b-decode.yaml", "-o", out, "--set", "hbm=40GB");
  const [head, ...lines] = readFileSync(`${out}/results.csv`, "utf8").trim().split("\n");
  mkdirSync(sweep);
  writeFileSync(`${sweep}/results.csv`, [`hbm,${head}`, ...["40GB", "44GB"].flatMap((hbm) => lines.map((line) => `${hbm},${line}`))].join("\n"));
});
after(() => folder.remove());

test("axes that step together are one, the other need not be chosen", { skip }, () => {
  const [head, ...lines] = readFileSync(`${out}/results.csv`, "utf8").trim().split("\n");
  const write = (name, points) => {
    mkdirSync(name);
    writeFileSync(`${name}/results.csv`, [`hbm,batch,${head}`, ...points.flatMap((p) => lines.map((line) => `${p},${line}`))].join("\n"));
  };
  write(zipped, ["40GB,16", "44GB,8", "48GB,8"]);
  write(grid, ["40GB", "44GB"].flatMap((hbm) => [16, 8, 4].map((batch) => `${hbm},${batch}`)));
  const done = plot("sweep", zipped, "--x", "hbm", "-o", folder.file("zipped.svg"));
  assert.equal(done.status, 0, done.stderr);
});

const frontier = folder.file("frontier.json");
writeFileSync(frontier, JSON.stringify({ format: "hyperoffload-frontier", version: 1, trace: "t", hardware: "h", iterations: 1, points: [
  { hbm_bytes: 2 ** 30, iteration_s: 1.5, ideal_s: 0.5, bound: { stall_s: 0.25 } }, { hbm_bytes: 2 ** 31, iteration_s: 0.5, ideal_s: 0.5, bound: { stall_s: 0 } }] }));

test("each figure is drawn, the same each time", { skip }, () => {
  for (const [name, ...args] of [["memory", `${out}/graph.series.json`], ["policies", out], ["sweep", sweep], ["frontier", sweep], ["frontier", frontier]]) {
    const files = (name === "memory" ? ["a.svg", "b.svg", "c.png"] : ["a.svg"]).map((end) => folder.file(`${name}-${end}`));
    for (const file of files) {
      const done = plot(name, ...args, "-o", file);
      assert.equal(done.status, 0, done.stderr);
    }
    assert.match(readFileSync(files[0], "utf8"), /<svg[^]*<\/svg>\s*$/);
    if (files.length === 1) continue;
    assert.equal(readFileSync(files[0], "utf8"), readFileSync(files[1], "utf8"));
    assert.equal(readFileSync(files[2]).toString("latin1", 1, 4), "PNG");
  }
});

test("wrong input is one sentence, exit 2 and no file", { skip }, () => {
  writeFileSync(folder.file("broken.json"), '{"runs": [');
  for (const [args, expected] of [
    [["memory", `${out}/results.json`], "hyperoffload-series"], [["policies", folder.file("broken.json")], "no JSON"],
    [["sweep", sweep, "--y", "speed"], 'no column "speed"'],
    [["sweep", sweep, "--y", "policy"], 'policy: found "resident", expected a number'],
    [["sweep", sweep, "--x", "trace"], '"hbm" has the values 40GB, 44GB, expected one'],
    [["sweep", grid, "--x", "hbm"], '"batch" has the values 4, 8, 16, expected one: choose with --where batch=4']]) {
    const done = plot(...args, "-o", folder.file("no.svg"));
    assert.equal(done.status, 2, done.stderr);
    assert.match(done.stderr, /^plot\.py: [^\n]*expected[^\n]*\n$/);
    assert.ok(done.stderr.includes(expected), done.stderr);
    assert.ok(!existsSync(folder.file("no.svg")));
  }
  assert.match(execFileSync(script, ["--help"], { encoding: "utf8" }), /scripts\/plot\.py memory/);
});
