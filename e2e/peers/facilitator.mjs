// The account that a seller's facilitator settles from, as a viem client of the local chain.
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";

// settler returns a client whose writes are queued: the account's nonce is read afresh for each, and
// the next write waits until the chain has taken the one before. Receipts are awaited side by side.
export function settler(rpc, key) {
  const client = createWalletClient({
    account: privateKeyToAccount(key),
    chain: { ...base, rpcUrls: { default: { http: [rpc] } } },
    transport: http(rpc),
    pollingInterval: 50,
  }).extend(publicActions);
  let last = Promise.resolve();
  const queued = (write) => (args) => (last = last.catch(() => {}).then(() => write(args)));
  return {
    ...client,
    address: client.account.address,
    writeContract: queued(client.writeContract),
    sendTransaction: queued(client.sendTransaction),
  };
}
