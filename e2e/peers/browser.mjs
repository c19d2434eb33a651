// A headless Chromium that a test drives: one command a line on standard input, as JSON, one answer a line on
// standard output. It ends with its parent. CHROMIUM, or --chromium, is the program.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { flag } from "./process.mjs";

const browser = await chromium.launch({
  executablePath: flag("chromium"),
  chromiumSandbox: process.getuid() !== 0, // root has no sandbox to give
});
const pages = new Map(); // by name
const heard = []; // dialogs, errors and requests that no page may make

async function page(name, options) {
  const context = await browser.newContext(options);
  const p = await context.newPage();
  p.setDefaultTimeout(15_000);
  p.on("dialog", (d) => { heard.push("dialog: " + d.message()); d.dismiss(); });
  p.on("pageerror", (e) => heard.push("error: " + e.message));
  p.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") heard.push(m.type() + ": " + m.text()); });
  p.on("request", (r) => { if (!/^(http:\/\/127\.0\.0\.1:|about:)/.test(r.url())) heard.push("request: " + r.url()); });
  pages.set(name, p);
}

const commands = {
  open: async ({ page: name, options }) => page(name, options ?? {}),
  goto: async ({ page: p, url }) => (await pages.get(p).goto(url))?.status(),
  fill: async ({ page: p, at, text }) => pages.get(p).fill(at, text),
  click: async ({ page: p, at }) => pages.get(p).click(at),
  press: async ({ page: p, key }) => pages.get(p).keyboard.press(key),
  wait: async ({ page: p, at }) => { await pages.get(p).waitForSelector(at); },
  text: async ({ page: p, at }) => pages.get(p).innerText(at),
  count: async ({ page: p, at }) => pages.get(p).locator(at).count(),
  url: async ({ page: p }) => pages.get(p).url(),
  evaluate: async ({ page: p, script }) => pages.get(p).evaluate(script),
  shot: async ({ page: p, path, whole }) => { await pages.get(p).screenshot({ path, fullPage: whole ?? false, animations: "disabled" }); },
  heard: async () => heard.splice(0),
};

process.stdout.write(JSON.stringify({ ready: true, version: browser.version() }) + "\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...args } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await commands[name](args)) ?? null };
  } catch (e) {
    answer = { error: String(e.message ?? e) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser.close();
