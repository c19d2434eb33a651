// A seller of the Payment scheme: mppx in front of goods of its own, on the Tempo network at --rpc. GET /dual is
// sold by @x402/express too, for a dollar of the chain at --base-rpc, and GET /evm by mppx on that chain.
// GET /stats, which is free, says how often each handler ran.
//
//	FACILITATOR_KEY=0x… SPONSOR_KEY=0x… node mppseller.mjs --rpc URL --base-rpc URL --pay-to ADDRESS
//		--partner ADDRESS [--port N]
import { randomBytes } from "node:crypto";
import express from "express";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as Settles } from "@x402/evm/exact/facilitator";
import { ExactEvmScheme as Sells } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { Challenge, Store } from "mppx";
import { evm, Mppx, tempo } from "mppx/server";
import { createClient, http, parseAbi, parseSignature } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { tempoModerato } from "viem/tempo/chains";
import { settler } from "./facilitator.mjs";
import { endWithParent, flag, listen, ready } from "./process.mjs";

const PATH_USD = "0x20c0000000000000000000000000000000000000";
const DOLLAR = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const rpc = flag("rpc");
const payTo = flag("pay-to");
const partner = flag("partner");
const sponsor = privateKeyToAccount(flag("sponsor-key"));

endWithParent();

// Tempo, under whichever ID a route names.
const clients = {};
const getClient = ({ chainId = tempoModerato.id } = {}) =>
  (clients[chainId] ??= createClient({
    chain: { ...tempoModerato, id: chainId, rpcUrls: { default: { http: [rpc] } } },
    transport: http(rpc, { retryCount: 0 }),
    pollingInterval: 50,
  }));

// evm/charge, settled by the facilitator's account.
const account = settler(flag("base-rpc"), flag("facilitator-key"));
const eip3009 = parseAbi([
  "function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
]);
async function settle({ payload: p }) {
  const { r, s, v } = parseSignature(p.signature);
  const hash = await account.writeContract({
    address: DOLLAR,
    abi: eip3009,
    functionName: "transferWithAuthorization",
    args: [p.from, p.to, BigInt(p.value), BigInt(p.validAfter), BigInt(p.validBefore), p.nonce, Number(v), r, s],
  });
  const receipt = await account.waitForTransactionReceipt({ hash });
  if (receipt.status !== "success") throw new Error(`${hash} reverted`);
  return { reference: hash };
}

const secretKey = randomBytes(32).toString("base64");
const store = Store.memory();
const token = { currency: PATH_USD, recipient: payTo, getClient };
const charge = tempo.charge({ ...token, store });
const create = (rest) => Mppx.create({ secretKey, realm: "goods.example", ...rest });
const mppx = create({
  methods: [
    charge,
    tempo.session({ ...token, store: Store.memory(), account: sponsor }),
    evm.charge({
      currency: DOLLAR, recipient: payTo, chainId: 8453, decimals: 6, settle,
      authorization: { name: "USD Coin", version: "2" },
    }),
  ],
});
const beside = create({ methods: [charge], requiresAuth: true }); // the credential beside another Authorization
const spoken = create({ methods: [charge], realm: "Café — 日本" });
const sponsored = create({ methods: [tempo.charge({ ...token, store, feePayer: sponsor })] });

const sold = {
  "GET /cent": mppx.tempo.charge({ amount: "0.01" }),
  "GET /two": mppx.tempo.charge({ amount: "2" }),
  "POST /echo": mppx.tempo.charge({ amount: "0.02" }),
  "GET /splits": mppx.tempo.charge({
    amount: "0.03",
    splits: [
      { amount: "0.01", recipient: partner },
      { amount: "0.0005", recipient: sponsor.address, memo: `0x${"ab".repeat(32)}` },
    ],
  }),
  "GET /opaque": mppx.tempo.charge({
    amount: "0.01", externalId: "order-42", meta: { order: "42", note: "a <b> & \"c\" ü" },
  }),
  "GET /auth": beside.tempo.charge({ amount: "0.01" }),
  "GET /zero": mppx.tempo.charge({ amount: "0" }),
  "GET /push": mppx.tempo.charge({ amount: "0.01", supportedModes: ["push"] }),
  "GET /pull": mppx.tempo.charge({ amount: "0.01", supportedModes: ["pull"] }),
  "GET /both": mppx.compose(["tempo/session", { amount: "0.001", unitType: "page" }], ["tempo/charge", { amount: "0.01" }]),
  "GET /several": mppx.tempo.charge({ amount: "0.01" }),
  "GET /words": spoken.tempo.charge({ amount: "0.01", description: "Zwölf Seiten — 十二頁 \"😀\" \\ € Payment id=\"x\"" }),
  "GET /sponsored": sponsored.tempo.charge({ amount: "0.01" }),
  "GET /elsewhere": mppx.tempo.charge({ amount: "0.01", chainId: 4217 }),
  "GET /broken": mppx.tempo.charge({ amount: "0.01" }),
  "GET /evm": mppx.evm.charge({ amount: "0.01" }),
  "GET /dual": mppx.tempo.charge({ amount: "0.01" }),
};

// stripe is a challenge of a method that none of us has, on a header line of its own.
const stripe = () =>
  Challenge.serialize(
    Challenge.from({
      secretKey, realm: "goods.example", method: "stripe", intent: "charge",
      request: { amount: "1", currency: "usd", methodDetails: { networkId: "none", paymentMethodTypes: ["card"] } },
    }),
  );

const paidBy = (scheme, header) => new RegExp(`^${scheme}\\s`, "i").test(header ?? "");

// gate answers with the challenge, or lets a paid request through and puts its receipt on whatever is answered.
async function gate(req, res, next) {
  const path = `${req.method} ${req.path}`;
  const handler = sold[path];
  if (!handler) return next();
  if (path === "GET /auth" && req.get("Authorization") !== "Bearer reader") return res.status(401).json({ error: "no reader" });
  if (path === "GET /dual" && req.get("Payment-Signature")) return next(); // x402's
  const controller = new AbortController();
  res.once("close", () => controller.abort());
  const asked = new Request(new URL(req.originalUrl, `http://${req.get("Host")}`), {
    method: req.method, headers: req.headers, signal: controller.signal,
  });
  const result = await handler(asked);
  const head = result.status === 402 ? result.challenge : result.withReceipt(new Response(null));
  if (path === "GET /several" && result.status === 402) res.append("WWW-Authenticate", stripe());
  for (const [name, value] of head.headers) {
    if (name === "www-authenticate") res.append(name, value);
    else if (name !== "content-type" || result.status === 402) res.set(name, value);
  }
  if (result.status === 402 && path === "GET /dual" && !paidBy("Payment", req.get("Authorization"))) {
    res.removeHeader("Content-Type");
    return next(); // x402 adds its offer
  }
  if (result.status === 402) return res.status(head.status).send(Buffer.from(await head.arrayBuffer()));
  req.paid = true;
  next();
}

const facilitator = new x402Facilitator().register("eip155:8453", new Settles(toFacilitatorEvmSigner(account)));
const x402 = paymentMiddleware(
  { "GET /dual": { accepts: { scheme: "exact", network: "eip155:8453", payTo, price: "$0.01" }, description: "either" } },
  new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported(),
  }).register("eip155:8453", new Sells()),
);

const app = express();
const served = {};
app.get("/stats", (_req, res) => res.json(served));
app.use((req, res, next) => gate(req, res, next).catch(next));
app.use((req, res, next) => (req.paid ? next() : x402(req, res, next)));
app.use((req, _res, next) => {
  const route = `${req.method} ${req.path}`;
  served[route] = (served[route] ?? 0) + 1;
  next();
});
app.post("/echo", express.raw({ type: () => true, limit: "4mb" }), (req, res) => {
  res.set("Content-Type", req.get("Content-Type") ?? "application/octet-stream");
  res.send(Buffer.isBuffer(req.body) ? req.body : "");
});
app.get("/broken", (_req, res) => res.status(500).json({ error: "broken on purpose" }));
app.get("/{*path}", (req, res) =>
  res.json({ path: req.path, query: req.query, authorization: req.path === "/auth" ? req.get("Authorization") : undefined }),
);
ready({ url: await listen(app, flag("port", "0")), payTo, facilitator: account.address, sponsor: sponsor.address });
