// A server of MCP's own TypeScript SDK with what the conformance suite asks for, over HTTP, of both eras: the
// versions with sessions, and 2026-07-28. It prints its address. Tools, names and texts are the suite's.
"use strict";
const { randomBytes, randomUUID } = require("node:crypto");
const { createServer } = require("node:http");
const { createRequire } = require("node:module");
const suite = createRequire(`${process.env.TR_CONFORMANCE}/`);
const mcp = suite("@modelcontextprotocol/server");
const { NodeStreamableHTTPServerTransport, toNodeHandler } = suite("@modelcontextprotocol/node");

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SILENCE = Buffer.from("RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0", "latin1").toString("base64");
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const say = (text) => ({ type: "text", text });
const told = (...content) => ({ content });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Sessions by id; what they sent, by stream, for streams that are resumed.
const sessions = new Map();
const events = () => {
  const sent = [];
  return {
    storeEvent: async (stream, message) => `${stream}/${sent.push({ stream, message })}`,
    replayEventsAfter: async (last, { send }) => {
      const [stream, at] = last.split("/");
      for (let next = Number(at); next < sent.length; next++) {
        const { stream: of, message } = sent[next];
        if (of === stream && message?.jsonrpc) await send(`${stream}/${next + 1}`, message);
      }
      return stream;
    },
  };
};

const state = mcp.createRequestStateCodec({ key: randomBytes(32) });
const question = (message, properties) =>
  mcp.inputRequired.elicit({ message, requestedSchema: { type: "object", properties, required: Object.keys(properties) } });
const asked = {
  name: () => question("Who are you?", { name: { type: "string" } }),
  confirm: () => question("Are you sure?", { ok: { type: "boolean" } }),
  color: () => question("Which color?", { color: { type: "string" } }),
  llm: (text) => mcp.inputRequired.createMessage({ messages: [{ role: "user", content: say(text) }], maxTokens: 50 }),
  roots: () => mcp.inputRequired.listRoots(),
};
const given = (ctx, key) => mcp.acceptedContent(ctx.mcpReq.inputResponses, key);
const raw = (ctx, key) => ctx.mcpReq.inputResponses?.[key];
const ask = async (inputRequests, kept) =>
  mcp.inputRequired({ inputRequests, ...(kept && { requestState: await state.mint({ ...kept, once: randomUUID() }) }) });

// What a server asks its client during a call, in sessions.
const elicit = async (ctx, message, requestedSchema) => {
  const { action, content } = await ctx.mcpReq.send({ method: "elicitation/create", params: { message, requestedSchema } });
  return told(say(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`));
};
const choices = (values, key = "const") => values.map((value) => ({ [key]: value, title: `The ${value} one` }));
const text = (more) => ({ type: "string", ...more });

const none = { type: "object", properties: {} };
const tools = {
  test_simple_text: () => told(say("This is a simple text response for testing.")),
  test_image_content: () => told(image),
  test_audio_content: () => told({ type: "audio", data: SILENCE, mimeType: "audio/wav" }),
  test_embedded_resource: () => told(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  test_multiple_content_types: () =>
    told(say("Several kinds:"), image, resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')),
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  test_tool_with_logging: async (_, ctx) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await ctx.mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
      await pause(20);
    }
    return told(say("logged"));
  },
  test_tool_with_progress: async (_, ctx) => {
    const { progressToken } = ctx.mcpReq._meta ?? {};
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await pause(20);
    }
    return told(say(String(progressToken)));
  },
  test_reconnection: async (_, ctx) => {
    sessions.get(ctx.sessionId)?.closeSSEStream(ctx.mcpReq.id);
    await pause(100);
    return told(say("after the stream was closed"));
  },
  test_sampling: async ({ prompt }, ctx) => {
    const params = { messages: [{ role: "user", content: say(prompt) }], maxTokens: 100 };
    const { content } = await ctx.mcpReq.send({ method: "sampling/createMessage", params });
    return told(say(`LLM response: ${content?.text}`));
  },
  test_elicitation: ({ message }, ctx) => elicit(ctx, message, { type: "object", properties: { response: text() }, required: ["response"] }),
  test_elicitation_sep1034_defaults: (_, ctx) =>
    elicit(ctx, "All kinds of defaults", {
      type: "object",
      properties: {
        name: text({ default: "John Doe" }),
        age: { type: "integer", default: 30 },
        score: { type: "number", default: 95.5 },
        status: text({ enum: ["active", "inactive", "pending"], default: "active" }),
        verified: { type: "boolean", default: true },
      },
    }),
  test_elicitation_sep1330_enums: (_, ctx) =>
    elicit(ctx, "All kinds of choices", {
      type: "object",
      properties: {
        untitledSingle: text({ enum: ["option1", "option2", "option3"] }),
        titledSingle: text({ oneOf: choices(["value1", "value2", "value3"]) }),
        legacyEnum: text({ enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] }),
        untitledMulti: { type: "array", items: text({ enum: ["option1", "option2", "option3"] }) },
        titledMulti: { type: "array", items: { anyOf: choices(["value1", "value2", "value3"]) } },
      },
    }),
  test_x_mcp_header: ({ region }) => told(say(`in ${region}`)),
  test_streaming_elicitation: () => told(say("no questions")),
  test_logging_tool: async (_, ctx) => {
    await ctx.mcpReq.log("info", "for those who ask for logs");
    return told(say("logged"));
  },
  test_missing_capability: (_, ctx) => (raw(ctx, "answer") ? told(say("sampled")) : ask({ answer: asked.llm("Say a word") })),
  test_trigger_tool_change: () => (modern.notify.toolsChanged(), told(say("changed"))),
  test_trigger_prompt_change: () => (modern.notify.promptsChanged(), told(say("changed"))),
  test_input_required_result_elicitation: (_, ctx) => {
    const name = given(ctx, "user_name")?.name;
    return typeof name === "string" ? told(say(`Hello, ${name}!`)) : ask({ user_name: asked.name() });
  },
  test_input_required_result_sampling: (_, ctx) => {
    const answer = raw(ctx, "capital_question");
    return answer ? told(say(`Sampled: ${answer.content?.text}`)) : ask({ capital_question: asked.llm("Which capital has France?") });
  },
  test_input_required_result_list_roots: (_, ctx) => {
    const roots = raw(ctx, "client_roots")?.roots;
    return roots ? told(say(`${roots.length} roots: ${roots.map(({ uri }) => uri)}`)) : ask({ client_roots: asked.roots() });
  },
  test_input_required_result_request_state: (_, ctx) =>
    given(ctx, "confirm") && ctx.mcpReq.requestState() ? told(say("state-ok")) : ask({ confirm: asked.confirm() }, { of: "state" }),
  test_input_required_result_tampered_state: (_, ctx) =>
    given(ctx, "confirm") && ctx.mcpReq.requestState() ? told(say("integrity-ok")) : ask({ confirm: asked.confirm() }, { of: "integrity" }),
  test_input_required_result_multiple_inputs: (_, ctx) => {
    const [name, greeting, roots] = [given(ctx, "user_name")?.name, raw(ctx, "greeting")?.content?.text, raw(ctx, "client_roots")?.roots];
    if (name && greeting && roots) return told(say(`${greeting} ${name}, with ${roots.length} roots`));
    return ask({ user_name: asked.name(), greeting: asked.llm("Greet"), client_roots: asked.roots() }, { of: "all" });
  },
  test_input_required_result_multi_round: (_, ctx) => {
    const kept = ctx.mcpReq.requestState();
    if (!kept?.round) return ask({ step1: asked.name() }, { round: 1 });
    if (kept.round === 1) return ask({ step2: asked.color() }, { round: 2, name: given(ctx, "step1")?.name });
    return told(say(`${kept.name} likes ${given(ctx, "step2")?.color}`));
  },
  test_input_required_result_capabilities: (_, ctx) => {
    if (ctx.mcpReq.inputResponses) return told(say("answered"));
    const declared = ctx.mcpReq.envelope?.[mcp.CLIENT_CAPABILITIES_META_KEY] ?? {};
    const all = { elicitation: asked.name(), sampling: asked.llm("Greet"), roots: asked.roots() };
    const requests = Object.entries(all).filter(([kind]) => declared[kind]);
    return requests.length ? ask(Object.fromEntries(requests)) : told(say("nothing can be asked"));
  },
};
const schemas = {
  test_sampling: { type: "object", properties: { prompt: text() }, required: ["prompt"] },
  test_elicitation: { type: "object", properties: { message: text() }, required: ["message"] },
  test_x_mcp_header: { type: "object", properties: { region: text({ "x-mcp-header": "Region" }), level: { type: "integer" } } },
};

const prompt = (...contents) => ({ messages: contents.map((content) => ({ role: "user", content })) });

const serve = () => {
  const capabilities = {
    tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true }, logging: {}, completions: {},
  };
  const server = new mcp.McpServer({ name: "conformance", version: "1" }, { capabilities, requestState: { verify: state.verify } });
  for (const [name, run] of Object.entries(tools)) {
    const inputSchema = mcp.fromJsonSchema(schemas[name] ?? none);
    server.registerTool(name, { description: name.replaceAll("_", " "), inputSchema }, async (args, ctx) => run(args, ctx));
  }
  const read = (name, mimeType, more) => {
    const uri = `test://${name}`;
    server.registerResource(name, uri, { mimeType }, async () => ({ contents: [{ uri, mimeType, ...more }] }));
  };
  read("static-text", "text/plain", { text: "A text that stays." });
  read("static-binary", "image/png", { blob: PIXEL });
  read("watched-resource", "text/plain", { text: "A text that is watched." });
  const template = new mcp.ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, async (uri, { id }) => ({
    contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id, data: `Data for ID: ${id}` }) }],
  }));
  const args = (properties) => mcp.fromJsonSchema({ type: "object", properties, required: Object.keys(properties) });
  server.registerPrompt("test_simple_prompt", { description: "simple" }, async () => prompt(say("This is a simple prompt for testing.")));
  const two = { description: "with arguments", argsSchema: args({ arg1: text(), arg2: text() }) };
  server.registerPrompt("test_prompt_with_arguments", two, async ({ arg1, arg2 }) => prompt(say(`arg1='${arg1}', arg2='${arg2}'`)));
  const one = { description: "with a resource", argsSchema: args({ resourceUri: text() }) };
  server.registerPrompt("test_prompt_with_embedded_resource", one, async ({ resourceUri }) =>
    prompt(resource(resourceUri, "text/plain", "An embedded text."), say("Read this.")),
  );
  server.registerPrompt("test_prompt_with_image", { description: "with an image" }, async () => prompt(image, say("Look at this.")));
  server.registerPrompt("test_input_required_result_prompt", { description: "asks" }, async (ctx) => {
    const context = given(ctx, "user_context")?.context;
    return context ? prompt(say(`In ${context}`)) : ask({ user_context: question("Where?", { context: text() }) });
  });
  for (const method of ["resources/subscribe", "resources/unsubscribe", "logging/setLevel"]) {
    server.server.setRequestHandler(method, async () => ({}));
  }
  server.server.setRequestHandler("completion/complete", async () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return server;
};

const modern = mcp.createMcpHandler(serve);
const answerModern = toNodeHandler(modern);

const refuse = (response, status, code, message) => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }));
};

const begin = async () => {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: events(),
    retryInterval: 500,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await serve().connect(transport);
  return transport;
};

const isLocal = (host) => ["localhost", "127.0.0.1", "[::1]"].includes(host?.replace(/:\d+$/, ""));

const answer = async (request, response) => {
  if (!isLocal(request.headers.host)) return refuse(response, 403, -32000, "the host is not this machine");
  const parts = await request.toArray();
  const body = parts.length ? JSON.parse(Buffer.concat(parts)) : undefined;
  const header = (name) => request.headers[name];
  if (request.method === "POST") {
    const kind = mcp.classifyInboundRequest({
      httpMethod: "POST", protocolVersionHeader: header("mcp-protocol-version"), mcpMethodHeader: header("mcp-method"), body,
    }).kind;
    if (kind !== "legacy") return answerModern(request, response, body);
  }
  const id = header("mcp-session-id");
  const begins = !id && request.method === "POST" && body?.method === "initialize";
  const transport = begins ? await begin() : sessions.get(id);
  if (!transport) return id ? refuse(response, 404, -32001, "Session not found") : refuse(response, 400, -32000, "Session ID required");
  await transport.handleRequest(request, response, body);
};

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) refuse(response, 500, -32603, "internal error");
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
