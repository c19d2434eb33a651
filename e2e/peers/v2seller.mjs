// An x402 v2 seller: @x402/express in front of the goods, with the facilitator of @x402/core and @x402/evm in
// the same process, settling on the chain at --rpc.
//
//	FACILITATOR_KEY=0x… node v2seller.mjs --rpc URL --pay-to ADDRESS [--port N]
import express from "express";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as Settles } from "@x402/evm/exact/facilitator";
import { ExactEvmScheme as Sells } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { settler } from "./facilitator.mjs";
import { endWithParent, flag, listen, ready } from "./process.mjs";
import { goods, prices } from "./routes.mjs";

const NETWORK = "eip155:8453";
const payTo = flag("pay-to");

endWithParent();
const account = settler(flag("rpc"), flag("facilitator-key"));
const facilitator = new x402Facilitator().register(NETWORK, new Settles(toFacilitatorEvmSigner(account)));
const server = new x402ResourceServer({
  verify: (payload, requirements) => facilitator.verify(payload, requirements),
  settle: (payload, requirements) => facilitator.settle(payload, requirements),
  getSupported: async () => facilitator.getSupported(),
}).register(NETWORK, new Sells());

const routes = Object.fromEntries(
  Object.entries(prices).map(([route, price]) => [
    route,
    { accepts: { scheme: "exact", network: NETWORK, payTo, price }, description: `e2e ${route}` },
  ]),
);
// These settle before the handler runs, so a broken handler has been paid.
for (const route of ["GET /upfront", "GET /upfront-broken"]) {
  routes[route] = {
    accepts: { scheme: "exact", network: NETWORK, payTo, price: "$0.01", extra: { paymentFlow: "upfront" } },
    description: `e2e ${route}`,
  };
}

const app = express();
app.use(paymentMiddleware(routes, server));
app.use(goods());
ready({ url: await listen(app, flag("port", "0")), payTo, facilitator: account.address });
