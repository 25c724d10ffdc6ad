// A page in headless Chromium: what it says, logs, asks the network for.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, dirname } from "node:path";
import { fileURLToPath } from "node:url";

export const top = join(dirname(fileURLToPath(import.meta.url)), "../..");
const require = createRequire(join(top, "app/report/package.json"));
const { chromium } = require("playwright-core");

export const program = process.env.HYPEROFFLOAD;
export const run = (...args) => execFileSync(program, args, { cwd: top, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

export const temporaryFolder = () => {
  const path = mkdtempSync(join(tmpdir(), "hyperoffload-page-"));
  return { path, file: (name) => join(path, name), remove: () => rmSync(path, { recursive: true, force: true }) };
};

export const openBrowser = () => {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
};

// `faults`: console errors and warnings, uncaught errors, and every request that isn't the file itself.
export const openPage = async (browser, path, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...options });
  const faults = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && faults.push(m.text()));
  page.on("pageerror", (e) => faults.push(String(e.stack)));
  page.on("request", (r) => r.url().startsWith("file:") || r.url().startsWith("data:") || faults.push(`asks for ${r.url()}`));
  await page.goto(`file://${path}`);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, faults };
};
