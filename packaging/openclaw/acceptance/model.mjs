// A model with a script: an OpenAI-compatible server that asks for the scripted calls, one a request, and then ends.
import { createServer } from "node:http";

/** Listens on a free port. `steps` are calls: { tool, args, id }. Keeps each request. */
export async function model(steps) {
  const requests = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      if (!request.url.endsWith("/chat/completions")) return response.writeHead(404).end("{}");
      const asked = JSON.parse(body);
      const step = steps[requests.length];
      requests.push(asked);
      const delta = step
        ? { role: "assistant", content: null, tool_calls: [{ index: 0, id: step.id, type: "function", function: { name: step.tool, arguments: JSON.stringify(step.args) } }] }
        : { role: "assistant", content: "done" };
      const finish_reason = step ? "tool_calls" : "stop";
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
    requests,
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
