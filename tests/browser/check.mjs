// Opens pages of `tpc plan --html` in a headless Chromium, and tests them. See README.md.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const root = path.resolve(import.meta.dirname, "../..");
const tpc = process.env.TPC ?? path.join(root, "target/release/tpc");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

const driver = await import("playwright-core").catch(() => null);
if (!driver || !fs.existsSync(executablePath)) {
  console.log(`skipped: ${driver ? `no ${executablePath}` : "playwright-core is not installed"}`);
  process.exit(0);
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tpc-browser-"));
const header = (name) => path.join(root, "tests/data/headers", name);
const EVIL = '</script><img src=x onerror=alert(1)>\u202e"&lt;';

function page(name, ...words) {
  const file = path.join(folder, `${name}.html`);
  spawnSync(tpc, ["plan", ...words, "--html", file], { cwd: root });
  assert.ok(fs.existsSync(file), `${name}: no page`);
  return file;
}

function hostile() {
  const capture = fs.readFileSync(path.join(root, "tests/data/graphs/llama-dense.jsonl"), "utf8");
  const file = path.join(folder, "capture.jsonl");
  fs.writeFileSync(file, capture.replaceAll('"blk.0.attn_q.weight"', JSON.stringify(EVIL)));
  return page("hostile", "--graph", file, "--devices", "2");
}

function broken() {
  const file = path.join(folder, "broken.gguf");
  fs.writeFileSync(file, "no model");
  return page("refused", file);
}

const PAGES = {
  large: () => page("large", header("llama-3.1-405b-q4_k_m.header.gguf"), "--devices", "8", "-sm", "tensor"),
  uneven: () => page("uneven", header("phi-4-q4_k_m.header.gguf"), "--devices", "3", "-sm", "tensor", "-c", "8192", "--topology", "docs/examples/topology.ron"),
  host: () => page("host", header("qwen3-30b-a3b-q4_k_m.header.gguf"), "--devices", "2", "-sm", "tensor", "--cpu-moe", "-c", "8192"),
  many: () => page("many", header("qwen3-0.6b-q8_0.header.gguf"), "--devices", "64", "-sm", "tensor"),
  layers: () => page("layers", header("llama-3.1-70b-instruct-q4_k_m.header.gguf"), "--devices", "4", "-sm", "layer"),
  short: () => page("short", header("llama-3.1-405b-q4_k_m.header.gguf"), "--devices", "2", "-c", "4096", "--topology", "docs/examples/topology.ron"),
  hostile,
  refused: broken,
};

const browser = await driver.chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// Opens a page and calls `use`. The page must neither log nor request anything.
async function visit(name, { width = 1440, colorScheme = "light" }, use) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const tab = await context.newPage();
  const said = [];
  const url = pathToFileURL(files[name]).href;
  tab.on("console", (m) => said.push(m.text()));
  tab.on("pageerror", (e) => said.push(String(e)));
  tab.on("dialog", (d) => said.push(`dialog ${d.message()}`));
  tab.on("request", (r) => { if (r.url() !== url && !r.url().startsWith("data:")) said.push(`request ${r.url()}`); });
  await tab.goto(url);
  await use?.(tab);
  assert.deepEqual(said, [], name);
  const text = await tab.locator("body").innerText();
  assert.doesNotMatch(text, /\b(null|undefined|NaN|Infinity|object Object)\b/, name);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} at ${width}: ${wide} px too wide`);
  if (process.env.SHOTS) await tab.screenshot({ path: path.join(process.env.SHOTS, `${name}-${colorScheme}-${width}.png`), fullPage: true });
  await context.close();
}

const rows = (tab) => tab.locator(".row").count();
const found = (tab) => tab.locator(".found").textContent();
const number = (text) => Number(text.replace(/\u202f/g, "").match(/\d+/)[0]);

const CHECKS = {
  async "search and filters find tensors"(tab) {
    const all = number(await found(tab));
    assert.equal(all, 1390);
    await tab.keyboard.press("/");
    await tab.keyboard.type("blk.17.attn_q");
    assert.match(await found(tab), /^1 of 1.390 tensors, 144 MiB/);
    assert.equal(await rows(tab), 1);
    assert.equal(await tab.locator(".row .name").textContent(), "blk.17.attn_q.weight");
    await tab.keyboard.press("Escape");
    assert.equal(number(await found(tab)), all);
    await tab.selectOption("#pick-split", "mirrored");
    assert.equal(number(await found(tab)), 2 * 126 + 2);
    await tab.selectOption("#pick-type", "q6_k");
    assert.equal(await rows(tab), 0);
    await tab.getByRole("button", { name: "Reset the filters" }).click();
    assert.equal(number(await found(tab)), all);
    await tab.getByRole("button", { name: "One by one" }).click();
    assert.equal(await tab.locator('[role="grid"]').getAttribute("aria-rowcount"), String(all + 1));
    assert.ok((await rows(tab)) < 60, "only what is in sight is drawn");
    await tab.locator(".list").evaluate((l) => l.scrollTo(0, l.scrollHeight));
    await tab.waitForFunction(() => [...document.querySelectorAll(".row .name")].some((n) => n.textContent === "cache_v_l125"));
    await tab.getByRole("button", { name: "One by one" }).click();
  },
  async "rows open with keys and close again"(tab) {
    await tab.locator("#search").focus();
    await tab.keyboard.press("ArrowDown");
    for (let i = 0; i < 3; i += 1) await tab.keyboard.press("ArrowDown");
    await tab.keyboard.press("Enter");
    assert.equal(await tab.locator(".detail .title").textContent(), "output.weight");
    assert.equal(await tab.locator(".detail tbody tr").count(), 8);
    assert.match(await tab.locator(".detail tbody tr").nth(1).textContent(), /16.032–32.063/);
    assert.equal(await tab.locator('.row[aria-selected="true"]').count(), 1);
    await tab.keyboard.press("Escape");
    await tab.keyboard.press("ArrowUp");
    await tab.keyboard.press("Enter");
    assert.equal(await tab.locator(".detail .title").textContent(), "output_norm.weight");
    assert.doesNotMatch(await tab.locator(".detail").textContent(), /null|undefined/);
    await tab.keyboard.press("Escape");
    assert.equal(await tab.locator(".detail .title").count(), 0);
    assert.ok(await tab.evaluate(() => document.activeElement.classList.contains("row")));
  },
  async "layers are chosen with pointer and keys"(tab) {
    const columns = tab.locator(".columns button");
    assert.equal(await columns.count(), 127);
    await columns.nth(18).click();
    assert.match(await tab.locator("#tensors .chip").textContent(), /^layer 17 /);
    assert.match(await tab.locator("#timeline .where").textContent(), /^layer 17,/);
    assert.equal(number(await found(tab)), 11);
    await tab.keyboard.press("ArrowRight");
    await tab.keyboard.press("Shift+ArrowRight");
    assert.match(await tab.locator("#tensors .chip").textContent(), /^layers 18–19 /);
    await tab.keyboard.press("Escape");
    assert.equal(number(await found(tab)), 1390);
    const a = await columns.nth(5).boundingBox();
    const z = await columns.nth(10).boundingBox();
    await tab.mouse.move(a.x + 2, a.y + 20);
    await tab.mouse.down();
    await tab.mouse.move(z.x + 2, z.y + 20, { steps: 8 });
    await tab.mouse.up();
    assert.match(await tab.locator("#tensors .chip").textContent(), /^layers 4–9 /);
    await tab.locator("#tensors .chip").click();
  },
  async "the timeline moves, zooms and lists"(tab) {
    const where = tab.locator("#timeline .where");
    const view = tab.locator(".lanes-in-time");
    await tab.locator(".columns button").nth(20).click();
    await view.focus();
    await tab.keyboard.press("ArrowRight");
    assert.match(await where.textContent(), /^layer 20,/);
    assert.equal(await tab.locator(".steps tr.transfer").count(), 2);
    await tab.keyboard.press("-");
    assert.match(await where.textContent(), /^layer 19 to layer 21,/);
    await tab.keyboard.press("0");
    assert.match(await where.textContent(), /^whole batch, 33.8 ms/);
    assert.match(await tab.locator(".steps").textContent(), /2 × 12.3 µs, 128 KiB/);
    await tab.getByRole("button", { name: "A prompt batch of 512" }).click();
    assert.match(await where.textContent(), /^whole batch, 628 ms/);
    await tab.getByRole("button", { name: "One token" }).click();
    await tab.locator("#timeline [data-tip]").nth(60).hover({ force: true });
    assert.equal(await tab.locator("#tip").evaluate((t) => t.style.display), "block");
    await tab.locator("#tensors .chip").click();
  },
  async "the theme follows the system and the button"(tab) {
    const becomes = (theme) => tab.waitForFunction((t) => document.documentElement.dataset.theme === t, theme, { timeout: 2000 });
    await becomes("light");
    await tab.emulateMedia({ colorScheme: "dark" });
    await becomes("dark");
    await tab.locator("#theme").click();
    await becomes("light");
    assert.equal(await tab.locator("#theme").textContent(), "Dark");
  },
  async "printing shows every row"(tab) {
    const groups = Number(await tab.locator('[role="grid"]').getAttribute("aria-rowcount")) - 1;
    await tab.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await rows(tab), groups);
    await tab.evaluate(() => dispatchEvent(new Event("afterprint")));
  },
};

let failed = 0;
async function check(name, run) {
  try {
    await run();
    console.log(`ok      ${name}`);
  } catch (e) {
    failed += 1;
    console.log(`FAILED  ${name}\n${e.stack}`);
  }
}

const files = {};
try {
  execFileSync(tpc, ["--version"]);
  for (const [name, make] of Object.entries(PAGES)) files[name] = make();
  for (const [name, run] of Object.entries(CHECKS)) await check(name, () => visit("large", {}, run));
  for (const name of Object.keys(PAGES)) {
    for (const look of [{}, { colorScheme: "dark" }, { width: 390 }, { width: 820, colorScheme: "dark" }]) {
      await check(`${name} ${JSON.stringify(look)}`, () => visit(name, look));
    }
  }
  await check("uneven splits show what is held twice, and segments", () => visit("uneven", {}, async (tab) => {
    await tab.selectOption("#pick-split", "partly held twice");
    await tab.locator(".row").first().click();
    assert.match(await tab.locator(".detail").textContent(), /Held by more than one device: edge blocks of 256/);
    await tab.selectOption("#pick-split", "segments");
    assert.match(await tab.locator(".row").first().textContent(), /attn_qkv/);
  }));
  await check("a hostile name is spelt out", () => visit("hostile", {}, async (tab) => {
    await tab.locator("#search").fill("onerror");
    const name = await tab.locator(".row .name").textContent();
    assert.equal(name, EVIL.replace("\u202e", "\\u{202e}"));
    await tab.locator(".row").click();
    assert.equal(await tab.locator("img").count(), 0);
  }));
  await check("a plan that does not fit says so", () => visit("short", {}, async (tab) => {
    assert.match(await tab.locator(".verdict").textContent(), /Plan has 2 errors/);
    assert.match(await tab.locator(".finding").first().textContent(), /TPC0300.*Cure/s);
    assert.match(await tab.locator("#memory").textContent(), /too many for 22.4 GiB/);
  }));
  await check("a refusal says why", () => visit("refused", {}, async (tab) => {
    assert.match(await tab.locator("main").textContent(), /cannot be planned.*Cure/s);
  }));
  await check("without scripts there is the table", async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const tab = await context.newPage();
    await tab.goto(pathToFileURL(files.large).href);
    assert.match(await tab.locator("body").innerText(), /per token: 253 all-reduces/);
    await context.close();
  });
} finally {
  await browser.close();
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log(failed ? `${failed} failed` : "all fine");
process.exit(failed ? 1 : 0);
