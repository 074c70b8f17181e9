// A client of MCP's own TypeScript SDK on standard input and output, with `tool-guard mcp --upstream URL` as its server.
// The suite names the scenario, and gives the URL as the last argument.
"use strict";
const { createRequire } = require("node:module");
const suite = createRequire(`${process.env.TR_CONFORMANCE}/`);
const { Client } = suite("@modelcontextprotocol/client");
const { StdioClientTransport } = suite("@modelcontextprotocol/client/stdio");

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const isModern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === "2026-07-28";

// Some of the suite's servers know no `server/discover`.
const discovered = {
  supportedVersions: ["2026-07-28"],
  capabilities: { tools: {}, resources: {}, prompts: {} },
  _meta: { "io.modelcontextprotocol/serverInfo": { name: "conformance", version: "1" } },
};

class Guarded extends StdioClientTransport {
  async send(message) {
    if (message.method === "server/discover" && scenario.startsWith("http-")) {
      queueMicrotask(() => this.onmessage({ jsonrpc: "2.0", id: message.id, result: discovered }));
      return;
    }
    await super.send(message);
  }
}

const callAll = async (client) => {
  const { tools } = await client.listTools();
  const wanted = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}").toolCalls;
  const own = { add_numbers: { a: 5, b: 3 } };
  const calls = wanted ?? tools.map(({ name }) => ({ name, arguments: own[name] ?? {} }));
  for (const call of calls) await client.callTool(call);
};

const readAll = async (client) => {
  for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri });
  for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name, arguments: {} });
};

const main = async (url) => {
  const capabilities = scenario === "request-metadata" ? { roots: { listChanged: true }, sampling: {}, elicitation: {} } : {};
  const options = { capabilities, ...(isModern && { versionNegotiation: { mode: "auto" } }) };
  const client = new Client({ name: "conformance", version: "1" }, options);
  const args = ["mcp", "--records", "memory", "--log", "off", "--upstream", url];
  await client.connect(new Guarded({ command: process.env.TR_TOOL_GUARD, args }));
  if (scenario === "initialize") await client.listTools();
  else if (scenario !== "request-metadata") await callAll(client);
  if (scenario === "http-standard-headers") await readAll(client);
  await client.close();
};

main(process.argv.at(-1));
