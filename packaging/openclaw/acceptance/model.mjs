// A model with a script: an OpenAI-compatible server that asks for the scripted calls, one a request, and then ends.
import { createServer } from "node:http";

/** How quickly it answers: more so than any real one. */
const AFTER = 200;

/** A step that a content filter ends. */
export const FILTERED = "content_filter";

/** Listens on a free port. A step is a call, { tool, args, id }, or several, or FILTERED. Keeps each request, and when it came. */
export async function model(steps) {
  const [requests, times] = [[], []];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", async () => {
      if (!request.url.endsWith("/chat/completions")) return response.writeHead(404).end("{}");
      const asked = JSON.parse(body);
      const step = steps[requests.length] ?? [];
      const calls = step === FILTERED ? [] : [step].flat();
      requests.push(asked);
      times.push(Date.now());
      await new Promise((later) => setTimeout(later, AFTER));
      const tool_calls = calls.map(({ tool, args, id }, index) => ({ index, id, type: "function", function: { name: tool, arguments: JSON.stringify(args) } }));
      const delta = { role: "assistant", ...(calls.length ? { content: null, tool_calls } : { content: step === FILTERED ? "" : "done" }) };
      const finish_reason = step === FILTERED ? FILTERED : calls.length ? "tool_calls" : "stop";
      const head = { id: `r${requests.length}`, object: "chat.completion.chunk", created: 1, model: asked.model };
      const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
      if (!asked.stream) {
        const message = { ...delta, tool_calls: delta.tool_calls?.map(({ index, ...call }) => call) };
        response.writeHead(200, { "content-type": "application/json" });
        return response.end(JSON.stringify({ ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage }));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const part of [{ delta, finish_reason: null }, { delta: {}, finish_reason }]) {
        response.write(`data: ${JSON.stringify({ ...head, choices: [{ index: 0, ...part }] })}\n\n`);
      }
      response.end(`data: ${JSON.stringify({ ...head, choices: [], usage })}\n\ndata: [DONE]\n\n`);
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    requests, times,
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => new Promise((closed) => (server.closeAllConnections(), server.close(closed))),
  };
}

/** The text of the last tool result that the model was sent in a request. */
export function lastResult(request) {
  const result = request.messages.filter(({ role }) => role === "tool").at(-1);
  const { content } = result ?? { content: "" };
  return typeof content === "string" ? content : content.map((block) => block.text ?? "").join("\n");
}
