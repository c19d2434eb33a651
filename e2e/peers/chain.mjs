// A local chain with the ID of Base: our Dollar at USDC's address and Multicall3 at its own.
// Prints one JSON line when it is ready. Everything listens on loopback; it ends, with the anvil it
// started, when standard input closes.
//
//	node chain.mjs [--port N]
import { readFileSync } from "node:fs";
import solc from "solc";
import { encodeFunctionData, parseAbi } from "viem";
import { anvil, freePort, stop, stopAll } from "./anvil.mjs";
import { endWithParent, flag, ready } from "./process.mjs";

const CHAIN_ID = 8453;
const DOLLAR = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const MULTICALL3 = "0xcA11bde05977b3631167028862bE2a173976CA11";

// multicall3Code copies Multicall3 from a Tempo network, where anvil lays it.
async function multicall3Code() {
  const { client, child } = await anvil(await freePort(), "--network", "tempo");
  const code = await client.getCode({ address: MULTICALL3 });
  await stop(child);
  if (!code) throw new Error("no Multicall3 on anvil's Tempo network");
  return code;
}

function dollarCode() {
  const content = readFileSync(new URL("contracts/Dollar.sol", import.meta.url), "utf8");
  const out = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: "Solidity",
        sources: { "Dollar.sol": { content } },
        settings: {
          evmVersion: "cancun",
          outputSelection: { "Dollar.sol": { Dollar: ["evm.deployedBytecode.object"] } },
        },
      }),
    ),
  );
  const errors = (out.errors ?? []).filter((e) => e.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join("\n"));
  return `0x${out.contracts["Dollar.sol"].Dollar.evm.deployedBytecode.object}`;
}

async function layDollar(client, faucet) {
  await client.setCode({ address: DOLLAR, bytecode: dollarCode() });
  const abi = parseAbi(["function initialize(string,string,string)", "function name() view returns (string)"]);
  const hash = await client.sendTransaction({
    account: faucet,
    chain: null,
    to: DOLLAR,
    data: encodeFunctionData({ abi, functionName: "initialize", args: ["USD Coin", "USDC", "2"] }),
  });
  await client.waitForTransactionReceipt({ hash });
  const name = await client.readContract({ address: DOLLAR, abi, functionName: "name" });
  if (name !== "USD Coin") throw new Error(`the token calls itself ${name}`);
}

endWithParent(stopAll);
try {
  const port = Number(flag("port", "0")) || (await freePort());
  const [multicall3, chain] = await Promise.all([
    multicall3Code(),
    anvil(port, "--chain-id", String(CHAIN_ID), "--accounts", "1", "--slots-in-an-epoch", "1"),
  ]);
  const [faucet] = await chain.client.getAddresses();
  await chain.client.setCode({ address: MULTICALL3, bytecode: multicall3 });
  await layDollar(chain.client, faucet);
  ready({ url: chain.url, chainId: CHAIN_ID, token: DOLLAR, multicall3: MULTICALL3, faucet });
} catch (error) {
  console.error(error);
  await stopAll();
  process.exit(1);
}
