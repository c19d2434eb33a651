// An x402 v1 seller: x402-express in front of the goods, and the facilitator of x402 behind HTTP on another
// loopback port of the same process, settling on the chain at --rpc.
//
//	FACILITATOR_KEY=0x… node v1seller.mjs --rpc URL --pay-to ADDRESS [--port N]
import express from "express4";
import { settle, verify } from "x402/facilitator";
import { paymentMiddleware } from "x402-express";
import { settler } from "./facilitator.mjs";
import { endWithParent, flag, listen, ready } from "./process.mjs";
import { goods, prices } from "./routes.mjs";

const NETWORK = "base";
const payTo = flag("pay-to");

endWithParent();
const account = settler(flag("rpc"), flag("facilitator-key"));

// answer keeps the process alive where the package throws, as its settle does on a used nonce.
const answer = (judge) => async (req, res) => {
  try {
    res.json(await judge(account, req.body.paymentPayload, req.body.paymentRequirements));
  } catch (error) {
    res.status(500).json({ error: String(error.shortMessage ?? error.message) });
  }
};
const facilitator = express();
facilitator.use(express.json());
facilitator.post("/verify", answer(verify));
facilitator.post("/settle", answer(settle));
facilitator.get("/supported", (_req, res) => {
  res.json({ kinds: [{ x402Version: 1, scheme: "exact", network: NETWORK }] });
});
const url = await listen(facilitator);

const routes = Object.fromEntries(
  Object.entries(prices).map(([route, price]) => [
    route,
    { price, network: NETWORK, config: { description: `e2e ${route}` } },
  ]),
);
const app = express();
app.use(paymentMiddleware(payTo, routes, { url }));
app.use(goods());
ready({ url: await listen(app, flag("port", "0")), payTo, facilitator: account.address });
