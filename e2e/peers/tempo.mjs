// A local Tempo network, with the ID of its test network and a block each second, whether anybody pays or not:
// expiring nonces are held against the latest block's time. The second block below the latest is final.
// Prints one JSON line when it is ready. It listens on loopback and ends when standard input closes.
//
//	node tempo.mjs [--port N]
import { anvil, freePort, stopAll } from "./anvil.mjs";
import { endWithParent, flag, ready } from "./process.mjs";

const CHAIN_ID = 42431;
const PATH_USD = "0x20c0000000000000000000000000000000000000";

endWithParent(stopAll);
try {
  const port = Number(flag("port", "0")) || (await freePort());
  const chain = await anvil(
    port,
    ...["--network", "tempo", "--hardfork", "t4", "--chain-id", String(CHAIN_ID), "--accounts", "1"],
    ...["--block-time", "1", "--block-base-fee-per-gas", "1", "--slots-in-an-epoch", "1"],
  );
  const [faucet] = await chain.client.getAddresses();
  ready({ url: chain.url, chainId: CHAIN_ID, token: PATH_USD, faucet });
} catch (error) {
  console.error(error);
  await stopAll();
  process.exit(1);
}
