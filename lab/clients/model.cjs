// A model that plays a script: the call, or the list of calls, of each answer in turn, then "done". It speaks Anthropic's Messages, OpenAI's
// Responses and Gemini's API, prints its port, and writes what it was asked to a file. Steps are `{"tool": …, "arguments": {…}}`.
"use strict";
const { appendFileSync } = require("node:fs");
const { randomBytes } = require("node:crypto");
const { createServer } = require("node:http");

const steps = JSON.parse(process.env.SCRIPT);
let asked = 0;

// As long and as random as the providers' own.
const random = () => randomBytes(12).toString("hex").slice(0, 22);

// Agents also ask for titles and the like, and offer no tools then.
const next = (body) => ((body.tools ?? []).length > 0 ? steps[asked++] : undefined);

const messages = (body, send) => {
  const steps = [next(body) ?? []].flat();
  const id = `msg_${Date.now()}_${asked}`;
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id, type: "message", role: "assistant", model: body.model, content: [] };
  send("message_start", { message: { ...message, stop_reason: null, stop_sequence: null, usage } });
  const called = (step) => [
    { type: "tool_use", id: `toolu_01${random()}`, name: `mcp__bank__${step.tool}`, input: {} },
    { type: "input_json_delta", partial_json: JSON.stringify(step.arguments) },
  ];
  const done = [{ type: "text", text: "" }, { type: "text_delta", text: "done" }];
  for (const [index, [content_block, delta]] of (steps.length ? steps.map(called) : [done]).entries()) {
    send("content_block_start", { index, content_block });
    send("content_block_delta", { index, delta });
    send("content_block_stop", { index });
  }
  const stop_reason = steps.length ? "tool_use" : "end_turn";
  send("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 1 } });
  send("message_stop", {});
};

const responses = (body, send) => {
  const steps = [next(body) ?? []].flat();
  const id = `resp_${asked}`;
  const called = (step, index) => ({
    type: "function_call",
    id: `fc_${asked}_${index}`,
    call_id: `call_${random()}`,
    namespace: "mcp__bank",
    name: step.tool,
    arguments: JSON.stringify(step.arguments),
  });
  const text = [{ type: "output_text", text: "done" }];
  const done = { type: "message", role: "assistant", id: `msg_${asked}`, content: text };
  send("response.created", { response: { id } });
  for (const [output_index, item] of (steps.length ? steps.map(called) : [done]).entries()) {
    send("response.output_item.done", { output_index, item });
  }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  send("response.completed", { response: { id, usage } });
};

const gemini = (body, response) => {
  const declared = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
  const step = next(body);
  const named = step && declared.find((tool) => tool.name.endsWith(step.tool));
  const part = named ? { functionCall: { name: named.name, args: step.arguments } } : { text: "done" };
  const content = { role: "model", parts: [part] };
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  const answer = { candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata };
  response.end(`data: ${JSON.stringify(answer)}\n\n`);
};

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (data) => (text += data));
  request.on("end", () => {
    const speaks = { "/v1/messages": messages, "/v1/responses": responses };
    const path = request.url.split("?")[0];
    const speak = speaks[path] ?? (path.endsWith(":streamGenerateContent") ? gemini : undefined);
    if (request.method !== "POST" || !speak) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"data":[],"models":[],"input_tokens":1}');
      return;
    }
    appendFileSync(process.env.ASKED, `${text}\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (speak === gemini) return gemini(JSON.parse(text), response);
    speak(JSON.parse(text), (type, more) => {
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    });
    response.end();
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
