// Starts anvils, and ends those that were started.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { createTestClient, http, publicActions, walletActions } from "viem";

const children = new Set();

function path() {
  const cpu = process.arch === "x64" ? "amd64" : process.arch;
  return createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${process.platform}-${cpu}/bin/anvil`);
}

// freePort returns a port of loopback that nobody listens at.
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

// anvil starts one and returns its client once it answers.
export async function anvil(port, ...args) {
  const child = spawn(path(), ["--host", "127.0.0.1", "--port", String(port), "--quiet", ...args], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.add(child);
  child.once("exit", () => children.delete(child));
  const url = `http://127.0.0.1:${port}`;
  const client = createTestClient({ mode: "anvil", transport: http(url, { retryCount: 0 }), pollingInterval: 20 })
    .extend(publicActions)
    .extend(walletActions);
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) throw new Error(`anvil ended with ${child.exitCode} on port ${port}`);
    try {
      await client.getChainId();
      return { url, client, child };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error(`anvil did not answer on port ${port}`);
}

// stop ends one.
export function stop(child) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const hard = setTimeout(() => child.kill("SIGKILL"), 5000);
    child.once("exit", () => {
      clearTimeout(hard);
      resolve();
    });
    child.kill("SIGTERM");
  });
}

// stopAll ends all of them.
export const stopAll = () => Promise.all([...children].map(stop));
