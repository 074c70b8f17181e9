// A server whose `pay` charges and then fails with the words of its receipt mail, if there are any, and whose `look` finds nothing.
// Where a file named KILL is, the first payment takes it away, kills the guard between the payment and its answer, and
// is never answered.
"use strict";
const { appendFileSync, readFileSync, unlinkSync } = require("node:fs");
const { createInterface } = require("node:readline");

const inputSchema = { type: "object", properties: { of: { type: "string" } } };
const tools = [
  { name: "pay", description: "Pays an order.", inputSchema },
  { name: "look", description: "Looks.", inputSchema, annotations: { readOnlyHint: true } },
];

// The guard starts a supervisor, and that one us.
const guard = () => Number(readFileSync(`/proc/${process.ppid}/stat`, "utf8").split(") ").at(-1).split(" ")[1]);

const isToKill = () => {
  try {
    unlinkSync(process.env.KILL);
    return true;
  } catch {
    return false;
  }
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" } },
  }),
  "tools/list": () => ({ result: { tools } }),
  "tools/call": (params) => {
    appendFileSync(process.env.LEDGER, `${JSON.stringify(params)}\n`);
    if (params.name === "pay" && isToKill()) {
      process.kill(guard(), "SIGKILL");
      return null;
    }
    const text = (text) => [{ type: "text", text }];
    if (params.name === "look") return { result: { isError: true, content: text(`no such row: ${params.arguments.of}`) } };
    if (process.env.MAIL) return { error: { code: -32603, message: process.env.MAIL } };
    return { result: { content: text(`receipt of ${params.arguments.of}`) } };
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const known = answers[method];
  const answer = known ? known(params) : { error: { code: -32601, message: "unknown method" } };
  if (!answer) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
});
