// A server over MCP's own SDK whose payment is made before its receipt mail fails: what the mail's
// server says becomes the words of the answer, and JSON-RPC's -32603 its code.
"use strict";
const { appendFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const peers = createRequire(`${process.env.TR_PEERS}/`);
const { Server } = peers("@modelcontextprotocol/sdk/server/index.js");
const { StdioServerTransport } = peers("@modelcontextprotocol/sdk/server/stdio.js");
const types = peers("@modelcontextprotocol/sdk/types.js");

const server = new Server({ name: "pay", version: "1.0.0" }, { capabilities: { tools: {} } });
server.setRequestHandler(types.ListToolsRequestSchema, () => ({
  tools: [{ name: "pay", inputSchema: { type: "object" } }],
}));
server.setRequestHandler(types.CallToolRequestSchema, (request) => {
  appendFileSync(process.env.LEDGER, "charged\n");
  throw new Error(request.params.arguments.mail);
});
server.connect(new StdioServerTransport());
