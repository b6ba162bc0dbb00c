// Opens the chat page of `tpc serve` in a headless Chromium, and tests it.
//
//   node page.mjs URL [--key-url URL --key KEY] [--no-ui-url URL]
//
// URL: a server without an API key. --key-url: a server with KEY. --no-ui-url: a server started with --no-ui.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "key-url": { type: "string" }, key: { type: "string" }, "no-ui-url": { type: "string" }, shots: { type: "string" } },
});
const [url] = positionals;
assert.ok(url, "usage: node page.mjs URL [--key-url URL --key KEY] [--no-ui-url URL] [--shots FOLDER]");

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const driver = await import("playwright-core").catch(() => null);
if (!driver || !fs.existsSync(executablePath)) {
  console.log(`skipped: ${driver ? `no ${executablePath}` : "playwright-core is not installed"}`);
  process.exit(0);
}

const profile = fs.mkdtempSync(path.join(os.tmpdir(), "tpc-page-"));
const args = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const browser = await driver.chromium.launchPersistentContext(profile, { executablePath, args });

const HTML = '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script><b>bold</b>';

// Opens the page and calls `use`. The page must not log, and must call its own server only.
async function visit(address, { width = 1200, colorScheme = "light", expected = /^$/ }, use) {
  const tab = await browser.newPage();
  await tab.setViewportSize({ width, height: 800 });
  await tab.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  const said = [];
  const note = (text) => { if (!expected.test(text)) said.push(text); };
  tab.on("console", (m) => note(m.text()));
  tab.on("pageerror", (e) => note(String(e)));
  tab.on("dialog", (d) => { note(`dialog ${d.message()}`); d.dismiss(); });
  tab.on("request", (r) => {
    if (!r.url().startsWith("data:") && new URL(r.url()).host !== new URL(address).host) note(`request ${r.url()}`);
  });
  await tab.goto(address);
  try {
    await use(tab);
    assert.deepEqual(said, []);
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} px too wide`);
  } finally {
    await tab.close();
  }
}

const answers = (tab) => tab.locator(".assistant");
const last = (tab) => answers(tab).last();
async function settings(tab, fields) {
  if (await tab.locator("#settings").isHidden()) await tab.getByRole("button", { name: "Settings" }).click();
  for (const [id, value] of Object.entries(fields)) await tab.locator(`#${id}`).fill(value);
  await tab.getByRole("button", { name: "Settings" }).click();
}
async function write(tab, text) {
  await tab.locator("#message").fill(text);
  await tab.locator("#message").press("Enter");
}
const done = (tab) => last(tab).locator(".foot").waitFor({ timeout: 120_000 });
const shot = (tab, name) => values.shots && tab.screenshot({ path: path.join(values.shots, `${name}.png`) });

const CHECKS = {
  async "an answer streams, and its speed is shown"(tab) {
    await settings(tab, { tokens: "40", temperature: "0" });
    await tab.waitForFunction(() => document.title !== "tpc");
    await write(tab, "Tell me a story about a boat.");
    await tab.locator(".assistant[aria-busy=true] .body").filter({ hasText: /\w/ }).waitFor({ timeout: 60_000 });
    const early = await last(tab).locator(".body").textContent();
    await done(tab);
    const whole = await last(tab).locator(".body").textContent();
    assert.ok(early.length > 0 && whole.length > early.length, "the text grows");
    assert.match(await last(tab).locator(".foot span").textContent(), /^\d+ tokens · [\d.]+ tokens\/s · .*prompt \d+ tokens/);
    await write(tab, "And then?");
    await answers(tab).nth(1).waitFor();
    await done(tab);
    assert.equal(await tab.locator(".again").count(), 1);
    await shot(tab, "chat");
  },
  async "Regenerate replaces the answer"(tab) {
    await settings(tab, { tokens: "12", temperature: "0" });
    await write(tab, "Name a colour.");
    await done(tab);
    const first = await last(tab).locator(".body").textContent();
    const sent = tab.waitForRequest(/chat\/completions/);
    await tab.getByRole("button", { name: "Regenerate" }).click();
    assert.equal((await sent).postDataJSON().messages.length, 1);
    await done(tab);
    assert.equal(await answers(tab).count(), 1);
    assert.equal(await last(tab).locator(".body").textContent(), first);
  },
  async "Stop ends the answer and frees the slot"(tab) {
    await settings(tab, { tokens: "4000", temperature: "1" });
    await write(tab, "Write a very long story.");
    await tab.locator(".assistant .body").filter({ hasText: /\w/ }).waitFor({ timeout: 60_000 });
    await tab.getByRole("button", { name: "Stop" }).click();
    await done(tab);
    assert.match(await last(tab).textContent(), /Stopped\./);
    assert.equal(await tab.locator("#send").textContent(), "Send");
    for (let i = 0; ; i += 1) {
      const slots = await (await fetch(new URL("slots", url))).json();
      if (slots.every((s) => !s.is_processing)) break;
      assert.ok(i < 50, "a slot is still busy");
      await new Promise((resolve) => { setTimeout(resolve, 200); });
    }
  },
  async "Escape stops, and New chat clears"(tab) {
    await settings(tab, { tokens: "4000", temperature: "1" });
    await write(tab, "Write a very long story.");
    await tab.locator(".assistant").waitFor();
    await tab.keyboard.press("Escape");
    await done(tab);
    await tab.getByRole("button", { name: "New chat" }).click();
    assert.equal(await tab.locator(".turn").count(), 0);
    assert.ok(await tab.locator("#empty").isVisible());
  },
  async "HTML is shown as text"(tab) {
    const title = await tab.title();
    await settings(tab, { tokens: "8" });
    await write(tab, HTML);
    await done(tab);
    assert.equal(await tab.locator(".user").textContent(), HTML);
    assert.equal(await tab.locator("#log img, #log script, #log b").count(), 0);
    assert.notEqual(await tab.title(), "broken", title);
  },
  async "an answer's Markdown is safe"(tab) {
    const text = `# Title\nA **bold** \`code\` ${HTML}\n\n- one\n- two\n\n1. first\n\n\`\`\`js\n${HTML}\n  indented\n\`\`\`\nend`;
    await tab.route(/chat\/completions/, (route) => {
      const chunk = (delta, more) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }], ...more })}\n\n`;
      const parts = [chunk({ role: "assistant", content: "" }), chunk({ reasoning_content: "Let me <b>think</b>" })];
      parts.push(...text.split(/(?<=.{7})/s).map((content) => chunk({ content })), "data: [DONE]\n\n");
      return route.fulfill({ contentType: "text/event-stream", body: parts.join("") });
    });
    await write(tab, "x");
    await done(tab);
    assert.equal(await last(tab).locator("img, script, b").count(), 0);
    assert.equal(await last(tab).locator("pre code").textContent(), `${HTML}\n  indented\n`);
    assert.deepEqual(await last(tab).locator("li").allTextContents(), ["one", "two", "first"]);
    assert.equal(await last(tab).locator("strong").textContent(), "bold");
    assert.equal(await last(tab).locator("details").getAttribute("open"), null);
    assert.equal(await last(tab).locator("details div").textContent(), "Let me <b>think</b>");
    await shot(tab, "markdown");
  },
  async "the system prompt and the settings reach the server"(tab) {
    await settings(tab, { system: "Answer in French.", tokens: "7", temperature: "0.5" });
    const sent = tab.waitForRequest(/chat\/completions/);
    await write(tab, "Hello");
    const body = (await sent).postDataJSON();
    assert.deepEqual(body.messages, [{ role: "system", content: "Answer in French." }, { role: "user", content: "Hello" }]);
    assert.equal(body.max_tokens, 7);
    assert.equal(body.temperature, 0.5);
    await done(tab);
    await settings(tab, { system: "", tokens: "", temperature: "" });
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

const SERVER_ERROR = /^Failed to load resource: the server responded with a status of (400|401|429|503)/;
try {
  for (const [name, run] of Object.entries(CHECKS)) await check(name, () => visit(url, {}, run));
  for (const look of [{ width: 360 }, { width: 360, colorScheme: "dark" }, { colorScheme: "dark" }]) {
    await check(`looks ${JSON.stringify(look)}`, () => visit(url, look, async (tab) => {
      await settings(tab, { tokens: "8" });
      await write(tab, "a".repeat(300));
      await done(tab);
      await tab.getByRole("button", { name: "Settings" }).click();
      await shot(tab, `look-${look.width ?? 1200}-${look.colorScheme ?? "light"}`);
    }));
  }
  await check("an error of a field is shown in words", () => visit(url, { expected: SERVER_ERROR }, async (tab) => {
    await settings(tab, { temperature: "1000" });
    await write(tab, "Hello");
    await done(tab);
    assert.match(await last(tab).locator(".error").textContent(), /temperature/);
    await settings(tab, { temperature: "", tokens: "4" });
    await tab.getByRole("button", { name: "Try again" }).click();
    await tab.locator(".assistant:not(.failed) .foot").waitFor({ timeout: 60_000 });
  }));
  for (const [status, header] of [[429, "2"], [503, "2"]]) {
    await check(`status ${status} says when to try again`, () => visit(url, { expected: SERVER_ERROR }, async (tab) => {
      const error = { message: "too many requests", type: "rate_limit_error", param: null, code: null };
      await tab.route(/chat\/completions/, (route) => route.fulfill({ status, headers: { "retry-after": header }, json: { error } }));
      await write(tab, "Hello");
      await done(tab);
      assert.match(await last(tab).locator(".error").textContent(), /busy: too many requests.*Try again in 2 s/);
      assert.ok(await tab.locator(".again").isDisabled());
      await tab.locator(".again:not(:disabled)").waitFor({ timeout: 5000 });
    }));
  }
  if (values["key-url"]) {
    await check("a wrong key is refused, and the right key works", () => visit(values["key-url"], { expected: SERVER_ERROR }, async (tab) => {
      await settings(tab, { key: "wrong", tokens: "4" });
      await write(tab, "Hello");
      await done(tab);
      assert.match(await last(tab).locator(".error").textContent(), /API key/);
      assert.ok(await tab.locator("#key").isVisible());
      await tab.locator("#key").fill(values.key);
      await tab.getByRole("button", { name: "Try again" }).click();
      await tab.locator(".assistant:not(.failed) .foot").waitFor({ timeout: 60_000 });
      const kept = await tab.evaluate(() => [JSON.stringify(localStorage), JSON.stringify(sessionStorage)]);
      assert.ok(!kept[0].includes(values.key) && kept[1].includes(values.key));
    }));
  }
  if (values["no-ui-url"]) {
    await check("--no-ui leaves the page out", async () => {
      for (const place of ["", "index.html"]) assert.equal((await fetch(new URL(place, values["no-ui-url"]))).status, 404);
    });
  }
} finally {
  await browser.close();
  fs.rmSync(profile, { recursive: true, force: true });
}
console.log(failed ? `${failed} failed` : "all fine");
process.exit(failed ? 1 : 0);
