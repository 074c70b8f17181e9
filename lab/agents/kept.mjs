// What a repair keeps, by its report and by the file that it wrote, and what of that an agent does not send.
import { quoted } from "./brief.mjs";

/** What a session loses of these kinds is named as such. */
const LOST = { call: ["call"], result: ["result"], reasoning: ["thinking", "reasoning"], media: ["image", "document"] };

/** What is to be sent: items `{ kind, id, text }` of which only what is there counts. */
export function kept({ repairs = [], losses = [] }, original, written, before) {
  const lost = losses.flatMap(({ what }) => LOST[what] ?? []);
  const unlinked = losses.filter(({ what }) => what === "link").map(({ toolUseId }) => toolUseId);
  // What the agent has sent, unless it is the agent's own.
  const isIn = (text) => text.split("\n").every((line) => original.includes(JSON.stringify(line).slice(1, -1)));
  const stays = before.filter(({ kind, id, text }) => !lost.includes(kind) && (kind === "call" || (isIn(text) && !(kind === "result" && unlinked.includes(id)))));
  const lines = original.split("\n");
  const named = repairs.flatMap(({ action, line, toolUseId: id }) => {
    if (action === "add_unknown") return [{ kind: "call", id }, { kind: "result", id, text: "outcome unknown" }];
    return action === "orphan_to_text" ? contents(result(JSON.parse(lines[line - 1]), id)) : [];
  });
  const old = new Set(lines);
  const records = written.split("\n").filter((line) => line && !old.has(line));
  const wrote = records.flatMap((line) => contents(JSON.parse(line))).filter(({ text }) => !isIn(text));
  return [...stays, ...named, ...wrote];
}

/** What of it is not sent. */
export function missing(wanted, items) {
  const isSent = (one) => items.some(({ kind, id, text }) => (!one.kind || kind === one.kind) && (!one.id || id === one.id) && (!one.text || text.includes(one.text.trim())));
  return [...new Set(wanted.filter((one) => !isSent(one)).map(({ kind = "text", text, id }) => `${kind} ${text ? quoted(text) : id}`))];
}

/** The result with this id in a record. */
function result(value, id) {
  if (typeof value !== "object" || value === null) return undefined;
  if ([value.tool_use_id, value.call_id, value.toolCallId].includes(id)) return value;
  return Object.values(value).map((inner) => result(inner, id)).find((found) => found);
}

/** The texts and images below a value, wherever an agent has them. */
function contents(value) {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (typeof inner !== "string") return contents(inner);
    if (["text", "content", "output"].includes(name)) return [{ text: inner }];
    return name === "data" || name === "image_url" ? [{ kind: "image", text: inner.replace(/^data:.*,/, "") }] : [];
  });
}
