// A facilitator of its own: the HTTP API of x402 over @x402/core and @x402/evm, settling on the chain at --rpc.
//
//	FACILITATOR_KEY=0x… node settleserver.mjs --rpc URL [--port N]
import express from "express";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { settler } from "./facilitator.mjs";
import { endWithParent, flag, listen, ready } from "./process.mjs";

endWithParent();
const account = settler(flag("rpc"), flag("facilitator-key"));
const facilitator = new x402Facilitator().register("eip155:8453", new ExactEvmScheme(toFacilitatorEvmSigner(account)));

const app = express();
app.use(express.json());
for (const what of ["verify", "settle"]) {
  app.post(`/${what}`, async (req, res) => {
    try {
      res.json(await facilitator[what](req.body.paymentPayload, req.body.paymentRequirements));
    } catch (err) {
      res.status(500).json({ error: String(err) });
    }
  });
}
app.get("/supported", (_, res) => res.json(facilitator.getSupported()));
ready({ url: await listen(app, flag("port", "0")), facilitator: account.address });
