// A server whose `pay` charges and then fails with the words of its receipt mail, and whose `look` finds nothing.
"use strict";
const { appendFileSync } = require("node:fs");
const { createInterface } = require("node:readline");

const inputSchema = { type: "object", properties: { of: { type: "string" } } };
const tools = [
  { name: "pay", description: "Pays an order.", inputSchema },
  { name: "look", description: "Looks.", inputSchema, annotations: { readOnlyHint: true } },
];

const answers = {
  initialize: ({ protocolVersion }) => ({
    result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" } },
  }),
  "tools/list": () => ({ result: { tools } }),
  "tools/call": (params) => {
    appendFileSync(process.env.LEDGER, `${JSON.stringify(params)}\n`);
    const text = `no such row: ${params.arguments.of}`;
    return params.name === "pay"
      ? { error: { code: -32603, message: process.env.MAIL } }
      : { result: { isError: true, content: [{ type: "text", text }] } };
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method]?.(params) ?? { error: { code: -32601, message: "unknown method" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
});
