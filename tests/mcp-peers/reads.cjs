// Reads answers to tools/call as the clients of MCP's own SDK do, by its schemas, and says what is
// left of them: a line of JSON for each.
"use strict";
const { createRequire } = require("node:module");
const { createInterface } = require("node:readline");
const peers = createRequire(`${process.env.TR_PEERS}/`);
const types = peers("@modelcontextprotocol/sdk/types.js");

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = types.JSONRPCMessageSchema.parse(JSON.parse(line));
  if (message.result) message.result = types.CallToolResultSchema.parse(message.result);
  console.log(JSON.stringify(message));
});
