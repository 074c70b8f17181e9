// A model on loopback that answers "pong" to everything, as Anthropic's Messages or OpenAI's Responses, and keeps the
// requests. It is each agent's proxy too: whatever would go beyond loopback comes here, is refused and noted.
import { createServer } from "node:http";

const SHAPES = [[/\/messages/, messages], [/\/responses/, responses]];
const TEXT = "pong";
const USAGE = { input_tokens: 1, output_tokens: 1 };

export async function model() {
  const [requests, beyond] = [[], []];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const json = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
      if (/^https?:/.test(request.url)) return beyond.push(request.url), json(403, {});
      if (request.method !== "POST") return json(200, { data: [], models: [] });
      if (request.url.includes("count_tokens")) return json(200, { input_tokens: 10 });
      const shape = SHAPES.find(([path]) => path.test(request.url))?.[1];
      if (!shape) return json(400, { error: { type: "invalid_request_error", message: "not played here" } });
      const body = JSON.parse(Buffer.concat(parts).toString());
      requests.push(body);
      const { whole, events } = shape(body.model, requests.length);
      if (!body.stream) return json(200, whole);
      response.writeHead(200, { "content-type": "text/event-stream", connection: "close" });
      response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
    });
  });
  const refuse = (socket, status) => socket.on("error", () => {}).end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
  server.on("connect", (request, socket) => (beyond.push(request.url), refuse(socket, "403 Forbidden")));
  server.on("upgrade", (_, socket) => refuse(socket, "426 Upgrade Required"));
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    requests,
    beyond,
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => new Promise((closed) => (server.closeAllConnections(), server.close(closed))),
  };
}

function messages(name, number) {
  const head = { id: `msg_${String(number).padStart(24, "0")}`, type: "message", role: "assistant", model: name, usage: USAGE };
  const reason = { stop_reason: "end_turn", stop_sequence: null };
  return {
    whole: { ...head, content: [{ type: "text", text: TEXT }], ...reason },
    events: [
      { type: "message_start", message: { ...head, content: [], stop_reason: null, stop_sequence: null } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: TEXT } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: reason, usage: { output_tokens: USAGE.output_tokens } },
      { type: "message_stop" },
    ],
  };
}

function responses(name, number) {
  const item = { type: "message", id: `msg_${number}`, role: "assistant", status: "completed", content: [{ type: "output_text", text: TEXT, annotations: [] }] };
  const head = { id: `resp_${number}`, object: "response", created_at: 1, model: name };
  const whole = { ...head, status: "completed", output: [item], usage: { ...USAGE, total_tokens: 2 } };
  return {
    whole,
    events: [
      { type: "response.created", response: { ...head, status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, content: [], status: "in_progress" } },
      { type: "response.content_part.added", item_id: item.id, output_index: 0, content_index: 0, part: { type: "output_text", text: "", annotations: [] } },
      { type: "response.output_text.delta", item_id: item.id, output_index: 0, content_index: 0, delta: TEXT },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: whole },
    ],
  };
}
