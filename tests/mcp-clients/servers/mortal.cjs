// A server on standard input and output: the first payment of each order is made, and kills the process that the argument
// names, `guard` or `server`, before its answer. Payments are written into LEDGER.
"use strict";
const { appendFileSync, readFileSync } = require("node:fs");
const { createInterface } = require("node:readline");

// The guard starts a supervisor, and that one us.
const victims = {
  guard: () => Number(readFileSync(`/proc/${process.ppid}/stat`, "utf8").split(") ").at(-1).split(" ")[1]),
  server: () => process.pid,
};

const pay = (params) => {
  const ledger = readFileSync(process.env.LEDGER, { encoding: "utf8", flag: "a+" });
  const line = `${JSON.stringify(params)}\n`;
  const isPaid = ledger.split("\n").some((other) => other && JSON.parse(other).arguments.of === params.arguments.of);
  appendFileSync(process.env.LEDGER, line);
  if (!isPaid) return process.kill(victims[process.argv[2]](), "SIGKILL"), undefined;
  return { content: [{ type: "text", text: `receipt of ${params.arguments.of}` }] };
};

const inputSchema = { type: "object", properties: { of: { type: "string" } } };
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion < "2026" ? protocolVersion : "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [{ name: "pay", description: "Pays an order.", inputSchema }] }),
  "tools/call": pay,
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const known = results[method];
  const answer = known ? { result: known(params) } : { error: { code: -32601, message: "unknown method" } };
  if (known && !answer.result) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
});
