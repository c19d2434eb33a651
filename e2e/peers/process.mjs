// What every peer shares: flags, the line that says it is ready, and how it ends.
import { parseArgs } from "node:util";

// flag reads --name VALUE, else the environment's NAME, else the default; with no default it must be given.
export function flag(name, fallback) {
  const { values } = parseArgs({ options: { [name]: { type: "string" } }, strict: false });
  const value = values[name] ?? process.env[name.toUpperCase().replaceAll("-", "_")] ?? fallback;
  if (value === undefined) {
    console.error(`missing --${name}`);
    process.exit(2);
  }
  return value;
}

// listen serves app on loopback only and returns its base URL.
export function listen(app, port = 0) {
  return new Promise((resolve, reject) => {
    const server = app.listen(Number(port), "127.0.0.1");
    server.once("error", reject);
    server.once("listening", () => resolve(`http://127.0.0.1:${server.address().port}`));
  });
}

// ready prints the one line on standard output that whoever started the peer waits for.
export function ready(facts) {
  process.stdout.write(JSON.stringify({ ready: true, port: Number(new URL(facts.url).port), ...facts }) + "\n");
}

// endWithParent ends the peer when standard input closes or on SIGTERM, after cleanup has run.
export function endWithParent(cleanup = () => {}) {
  let ending = false;
  const end = async () => {
    if (ending) return;
    ending = true;
    await cleanup();
    process.exit(0);
  };
  process.stdin.on("end", end).on("error", end).resume();
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
}
