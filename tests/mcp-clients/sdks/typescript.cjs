// Plays a script to servers with a client of MCP's TypeScript SDK, 1 or 2, or of npm's `@ai-sdk/mcp`, 1 or 2, and prints what
// it sees as JSON lines. A user whom a server asks confirms after 6 s.
//
// Usage: typescript.cjs 1|2|ai1|ai2 [{"name", "command" | "url", "script": [{"do", "tool", "arguments"}]}] [together]
//
// A target's script `again` is played by another client once the first has ended, in whatever way, and its file `back` is
// there, if it names one.
"use strict";
const { existsSync } = require("node:fs");
const { setTimeout } = require("node:timers/promises");
const { createRequire } = require("node:module");
const peers = createRequire(`${process.env.TR_PEERS}/`);

// How long a client waits for an answer, in milliseconds.
const LIMIT = 15_000;

const [which, targets, together] = process.argv.slice(2);

const capabilities = { elicitation: {} };
const confirm = async () => (await setTimeout(6_000), { action: "accept", content: {} });

// `@ai-sdk/mcp` in the form of the SDKs: a model's call is `execute`, and its limit a signal.
const ai = (name) => {
  const { createMCPClient, ElicitationRequestSchema } = peers(name);
  return {
    StreamableHTTPClientTransport: function (url, { requestInit: { headers } }) {
      return { type: "http", url: url.href, headers };
    },
    StdioClientTransport: peers(`${name}/mcp-stdio`).Experimental_StdioMCPTransport,
    Client: function () {
      let client;
      let tools;
      return {
        connect: async (transport) => {
          client = await createMCPClient({ transport, capabilities });
          client.onElicitationRequest(ElicitationRequestSchema, confirm);
        },
        getServerCapabilities: () => {},
        getServerVersion: () => {},
        listTools: async () => Object.keys((tools = await client.tools())),
        tool: (name) => tools[name],
        close: () => client.close(),
      };
    },
    call: (client, { name, arguments: made }, { timeout }) =>
      client.tool(name).execute(made, { messages: [], abortSignal: AbortSignal.timeout(timeout) }),
  };
};

const sdks = {
  1: () => ({
    ...peers("@modelcontextprotocol/sdk/client/index.js"),
    ...peers("@modelcontextprotocol/sdk/client/stdio.js"),
    ...peers("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    options: { capabilities },
    confirmed: peers("@modelcontextprotocol/sdk/types.js").ElicitRequestSchema,
    call: (client, made, options) => client.callTool(made, undefined, options),
  }),
  2: () => ({
    ...peers("@modelcontextprotocol/client"),
    ...peers("@modelcontextprotocol/client/stdio"),
    options: { capabilities, versionNegotiation: { mode: "auto" } },
    confirmed: "elicitation/create",
    call: (client, made, options) => client.callTool(made, options),
  }),
  ai1: () => ai("ai-sdk-mcp-1"),
  ai2: () => ai("@ai-sdk/mcp"),
};
const sdk = sdks[which]();

const note = (target, what, seen) => console.log(JSON.stringify([target, what, seen]));
const see = async (target, what, seeing) => {
  try {
    note(target, what, await seeing);
  } catch ({ constructor, code, message, data }) {
    note(target, what, { [constructor.name]: { code, message, data } });
  }
};

// The SDK loses progress that comes in one piece with the answer, so the later half is not noted.
const progressed = (target, what) => ({ progress, total, message }) => {
  if (2 * progress <= total) note(target, `${what} of ${progress}`, [total, message]);
};

const exists = async (file) => {
  for (const begun = Date.now(); !existsSync(file); await setTimeout(5)) {
    if (Date.now() - begun > LIMIT) throw new Error(`no ${file}`);
  }
};

const step = async (client, target, what, { do: kind, tool, arguments: given, file, limit, meta }) => {
  if (kind === "wait") return exists(file);
  const made = { name: tool, arguments: given, _meta: meta };
  if (kind === "list") return see(target, what, client.listTools());
  if (kind === "call") return see(target, what, sdk.call(client, made));
  if (kind === "progress") return see(target, what, sdk.call(client, made, { onprogress: progressed(target, what) }));
  const within = async (named) => {
    const begun = Date.now();
    const seen = await sdk.call(client, made, { timeout: limit ? 1_000 * limit : LIMIT }).catch(({ message }) => ({ error: message }));
    note(target, named, { took: Date.now() - begun, seen });
  };
  if (kind === "within") return within(what);
  if (kind === "both") return Promise.all([within(`${what} within`), within(`${what} within`)]);
  const controller = new AbortController();
  const onprogress = () => controller.abort("enough");
  return see(target, what, sdk.call(client, made, { onprogress, signal: controller.signal }));
};

const play = async ({ name, url, command, env, headers }, script, player = "") => {
  const transport = url
    ? new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new sdk.StdioClientTransport({ command: command[0], args: command.slice(1), env });
  const client = new sdk.Client({ name: "sdk", version: "1" }, sdk.options);
  client.setRequestHandler?.(sdk.confirmed, confirm);
  await client.connect(transport);
  note(name, `${player}initialized`, [client.getServerCapabilities(), client.getServerVersion()]);
  for (const [number, part] of script.entries()) {
    // The SDK reads them for each request.
    if (part.do === "renew") headers.authorization = part.token;
    else await step(client, name, `${player}${number} ${part.do}`, part);
  }
  // A server may have lost the session.
  if (transport.sessionId && transport.terminateSession) await transport.terminateSession().catch(() => {});
  await client.close();
};

const playAll = async (target) => {
  const { name, script, again, back } = target;
  if (!again) return play(target, script);
  await play(target, script).catch(({ message }) => note(name, "ended", message));
  if (back) await exists(back);
  await play(target, again, "again ");
};

const main = async () => {
  const all = JSON.parse(targets);
  if (together) return void (await Promise.all(all.map(playAll)));
  for (const target of all) await playAll(target);
};

main();
