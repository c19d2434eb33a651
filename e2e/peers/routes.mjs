// The goods, the same at both sellers: what each route costs and what its handler answers.
import express from "express";

// prices are dollars as the packages read them.
export const prices = {
  "GET /cent": "$0.01",
  "GET /subcent": "$0.0005",
  "POST /echo": "$0.02",
  "GET /stream": "$0.03",
  "GET /two": "$2",
  "GET /six": "$6",
  "GET /slow": "$0.01",
  "GET /broken": "$0.01",
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// goods returns the handlers, to be mounted behind a payment middleware. GET /stats, which is free, says how
// often each handler ran.
export function goods() {
  const router = express.Router();
  const served = {};
  router.use((req, _res, next) => {
    const route = `${req.method} ${req.path}`;
    if (req.path !== "/stats") served[route] = (served[route] ?? 0) + 1;
    next();
  });
  for (const path of ["/cent", "/subcent", "/two", "/six", "/free", "/upfront"]) {
    router.get(path, (req, res) => res.json({ path, query: req.query }));
  }
  router.post("/echo", express.raw({ type: () => true, limit: "4mb" }), (req, res) => {
    res.set("Content-Type", req.get("Content-Type") ?? "application/octet-stream");
    res.send(Buffer.isBuffer(req.body) ? req.body : "");
  });
  // Both packages hold a priced answer back until it is settled, so only the free stream arrives line by line.
  router.get(["/stream", "/free-stream"], async (_req, res) => {
    res.set("Content-Type", "text/plain");
    for (let i = 0; i < 20; i++) {
      res.write(`${`line ${i}`.padEnd(4095)}\n`);
      await sleep(40);
    }
    res.end();
  });
  router.get("/slow", async (_req, res) => {
    await sleep(1500);
    res.json({ path: "/slow" });
  });
  for (const path of ["/broken", "/upfront-broken"]) {
    router.get(path, (_req, res) => res.status(500).json({ error: "broken on purpose" }));
  }
  router.get("/stats", (_req, res) => res.json(served));
  return router;
}
