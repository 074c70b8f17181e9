// A server over HTTP, with sessions, at which the first payment of each order is made and then ends in a fault: the one that
// FAULT names, or the first part of the path, where each path is a server of its own. Payments are written into LEDGER. It
// prints its address, whose port PORT may name.
"use strict";
const { appendFileSync, readFileSync } = require("node:fs");
const { randomUUID } = require("node:crypto");
const { createServer } = require("node:http");

const shops = new Map();
const shop = (path) => {
  const fault = process.env.FAULT ?? decodeURIComponent(path.split("/")[1]);
  if (!shops.has(path)) shops.set(path, { sessions: new Set(), fault, resumed: undefined, asked: new Map() });
  return shops.get(path);
};

const json = (response, status, body, headers = {}) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ jsonrpc: "2.0", ...body }));
};
const error = (response, status, code, message) => json(response, status, { id: null, error: { code, message } });
const cut = (response, id) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(id ? `id: ${id}\ndata: \n\n` : ": here\n\n", () => response.destroy());
};

const faults = {
  401: (response) => response.writeHead(401).end("not you"),
  404: (response, { sessions }) => (sessions.clear(), error(response, 404, -32600, "Session not found")),
  400: (response, { sessions }) => (sessions.clear(), error(response, 400, -32000, "Bad Request: No valid session ID provided")),
  503: (response) => response.writeHead(503).end("upstream connect error"),
  drop: (response) => response.destroy(),
  hang: () => {},
  slow: (response, at, answer) => setTimeout(() => json(response, 200, answer), 6_000),
  silence: (response) => response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n"),
  // Kills the guard, whose number is in a file.
  kill: (response) => (process.kill(Number(readFileSync(process.env.GUARD_PID)), "SIGKILL"), response.destroy()),
  die: () => process.kill(process.pid, "SIGKILL"),
  "cut without id": (response) => cut(response),
  "cut with id": (response, at, answer) => ((at.resumed = answer), cut(response, "cut-1")),
};

// Asks the user on the call's stream, and goes on once they have answered, whether or not the client still waits.
const ask = (response, { asked }, goOn) => {
  const id = `ask-${randomUUID()}`;
  const event = (message) => `data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
  asked.set(id, () => response.end(event(goOn())));
  response.writeHead(200, { "content-type": "text/event-stream" });
  const params = { message: "Pay?", requestedSchema: { type: "object", properties: {} } };
  response.write(event({ id, method: "elicitation/create", params }));
};

// The orders that were paid before this process began, too.
const ledger = readFileSync(process.env.LEDGER, { encoding: "utf8", flag: "a+" });
const paid = new Map(ledger.split("\n").filter(Boolean).map((line) => [JSON.parse(line).arguments.of, 1]));

const inputSchema = { type: "object", properties: { of: { type: "string" } } };
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion < "2026" ? protocolVersion : "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [{ name: "pay", description: "Pays an order.", inputSchema }] }),
  "tools/call": (params) => {
    const { of } = params.arguments;
    paid.set(of, (paid.get(of) ?? 0) + 1);
    appendFileSync(process.env.LEDGER, `${JSON.stringify(params)}\n`);
    return { content: [{ type: "text", text: `receipt of ${of}, number ${paid.get(of)}` }] };
  },
};

const answer = async (request, response) => {
  const session = request.headers["mcp-session-id"];
  const at = shop(request.url);
  const { sessions, resumed } = at;
  if (request.method === "GET" && resumed && request.headers["last-event-id"] === "cut-1") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    return response.end(`id: cut-2\ndata: ${JSON.stringify(resumed)}\n\n`);
  }
  if (request.method !== "POST") return response.writeHead(405, { allow: "POST" }).end();
  const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()));
  const begins = method === "initialize";
  if (!begins && !session) return error(response, 400, -32000, "Bad Request: Session ID required");
  if (!begins && !sessions.has(session)) return error(response, 404, -32600, "Session not found");
  if (!method) at.asked.get(id)?.();
  if (id === undefined || !method) return response.writeHead(202).end();
  const known = results[method];
  if (!known) return json(response, 200, { id, error: { code: -32601, message: "unknown method" } });
  if (method === "tools/call" && at.fault === "asked") return ask(response, at, () => ({ id, result: known(params) }));
  const isFirst = method === "tools/call" && !paid.has(params.arguments.of);
  const result = known(params);
  const fault = isFirst && faults[at.fault];
  if (fault) return fault(response, at, { jsonrpc: "2.0", id, result });
  const headers = {};
  if (begins) sessions.add((headers["mcp-session-id"] = randomUUID()));
  json(response, 200, { id, result }, headers);
};

const server = createServer((request, response) => void answer(request, response));
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
