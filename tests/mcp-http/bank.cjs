// A server on standard input and output whose `pay` writes into a ledger before it answers, ends or stays silent.
"use strict";
const { appendFileSync } = require("node:fs");
const { createInterface } = require("node:readline");

const inputSchema = { type: "object", properties: { order: { type: "string" } } };
const readOnly = { annotations: { readOnlyHint: true } };
const tools = [{ name: "pay" }, { name: "balance", ...readOnly }, { name: "pid", ...readOnly }];

// Failures after the payment, by the beginning of the order; each is what stands after `"id":…,`.
const failures = {
  "rpc-503": `"error":{"code":-32000,"message":"503 Service Unavailable"}`,
  "internal": `"error":{"code":-32603,"message":"Internal error"}`,
  "unreadable": `"error":{"code":-32000,"message":NaN}`,
  "is-error-503": `"result":{"isError":true,"content":[{"type":"text","text":"HTTP 503 Service Unavailable"}]}`,
  "not-ready": `"result":{"isError":true,"content":[{"type":"text","text":"not ready yet"}]}`,
  "refused": `"result":{"isError":true,"content":[{"type":"text","text":"connect ECONNREFUSED 10.0.0.1:80"}]}`,
  "limited": `"result":{"isError":true,"content":[{"type":"text","text":"rate limit exceeded"}]}`,
};

const call = ({ name, arguments: { order } }) => {
  if (name === "pay") appendFileSync(process.argv[2], `${order}\n`);
  if (order.startsWith("crash")) process.kill(process.pid, "SIGKILL");
  if (order.endsWith("hang")) return undefined;
  if (order === "said") process.stdout.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"of whom?"}}\n`);
  const text = name === "pid" ? `${process.pid}` : `receipt of ${order}`;
  return { content: [{ type: "text", text }] };
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" },
  }),
  "server/discover": () => ({
    supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" },
    resultType: "complete",
  }),
  "tools/list": () => ({ tools: tools.map((tool) => ({ inputSchema, ...tool })) }),
  "tools/call": call,
  ping: () => ({}),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "notifications/cancelled") appendFileSync(process.argv[2], "cancelled\n");
  if (method === "notifications/ask") process.stdout.write(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}\n`);
  if (id === undefined || !method) return;
  const failure = method === "tools/call" && failures[params.arguments.order.split(":")[0]];
  if (failure) {
    appendFileSync(process.argv[2], `${params.arguments.order}\n`);
    return process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${failure}}\n`);
  }
  const known = answers[method];
  const said = known ? { result: known(params) } : { error: { code: -32601, message: "unknown method" } };
  if (known && said.result === undefined) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...said })}\n`);
});
