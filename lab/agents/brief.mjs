// What an agent sends, in short, for a cell of the table.
const [HEAD, TAIL] = [24, 14];

/** Items as `U "hello" A call 1 U result 1 "ok"`; calls are numbered in the order of the session. */
export const shown = (session, items) => code(phrase(session, items));

/** What is sent now that was not, and what is no more. */
export function changes(session, before, after) {
  const [old, now] = [before, after].map((items) => items.map((item) => JSON.stringify(item)));
  const limit = Math.min(old.length, now.length);
  let [begin, end] = [0, 0];
  while (begin < limit && old[begin] === now[begin]) begin += 1;
  while (end < limit - begin && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const [gone, come] = [before, after].map((items) => items.slice(begin, items.length - end));
  if (!gone.length && !come.length) return "the same";
  if (!come.length) return `without ${code(phrase(session, gone))}`;
  return code(phrase(session, come)) + (gone.length ? ` instead of ${code(phrase(session, gone))}` : " too");
}

function phrase(session, items) {
  const ids = [...new Set(session.match(/(?<=")(?:toolu|call)_\w+(?="(?!:))/g))];
  const words = items.map(({ role, kind, id, text }, number) => {
    const side = items[number - 1]?.role === role ? "" : `${role === "user" ? "U" : "A"} `;
    const call = id ? ` ${ids.indexOf(id) + 1}` : "";
    switch (kind) {
      case "call": return `${side}call${call}`;
      case "result": return `${side}result${call} ${quoted(text)}`;
      case "text": return side + quoted(text);
      case "thinking": case "image": return side + kind;
      default: return `${side}${kind} ${quoted(text)}`;
    }
  });
  return words.join(", ");
}

export function quoted(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return `"${line.length > HEAD + TAIL + 2 ? `${line.slice(0, HEAD)}…${line.slice(-TAIL)}` : line}"`;
}

const code = (text) => `\`${text.replaceAll("`", "'").replaceAll("|", "\\|")}\``;
