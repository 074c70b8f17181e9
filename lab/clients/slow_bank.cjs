// A server whose `pay` writes into the ledger at once, and answers after as many seconds as it is asked to take.
"use strict";
const { appendFileSync } = require("node:fs");
const { createInterface } = require("node:readline");

const inputSchema = { type: "object", properties: { order: { type: "string" }, takes: { type: "number" } } };
const answer = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    const serverInfo = { name: "bank", version: "1" };
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
  } else if (method === "tools/list") {
    answer(id, { tools: [{ name: "pay", description: "Pays an order.", inputSchema }] });
  } else if (method === "tools/call") {
    const { order, takes } = params.arguments;
    appendFileSync(process.env.LEDGER, `${order}\n`);
    const content = [{ type: "text", text: `receipt of ${order}` }];
    setTimeout(() => answer(id, { content }), takes * 1000);
  } else {
    answer(id, {});
  }
});
