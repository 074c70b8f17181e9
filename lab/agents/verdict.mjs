// Whether what `check` says is what the agent does. These rules are written from the providers' documents, and share no
// code with the command.
const IMAGES = [/^\x89PNG/, /^\xff\xd8\xff/, /^GIF8/, /^RIFF....WEBP/s];

/** Where `check` and the agent disagree. */
export function disagreements(folder, { check, recheck, isChanged, before, after }) {
  const [was, is] = [before, after].map((items) => faults(items, folder === "codex"));
  const found = [];
  if (check.exit === 0) {
    // As `check` counts: OpenAI's items, and Anthropic's turns. pi's results are messages of their own.
    const count = { codex: before.length, "claude-code": turns(before).length }[folder] ?? check.messages;
    // What it makes of a call that waits is its own.
    if (count !== check.messages && !check.pending.length) found.push(`it sends ${count} messages, not ${check.messages}`);
    if (was.length) found.push(`it sends ${was[0]}`);
  }
  for (const finding of (check.findings ?? []).filter(({ severity }) => severity === "error")) {
    if (finding.onResume) found.push(...(asTold(finding, before) ? [] : ["the agent does something else"]));
    else if (finding.providerError && !was.length) found.push("what it sends is valid");
    else if (!finding.providerError && JSON.stringify(before) === JSON.stringify(after)) found.push("it sends the same after the repair");
  }
  if (isChanged && recheck.exit) found.push(`\`check\` of the repaired session ends with ${recheck.exit}`);
  if (isChanged && !recheck.exit && is.length) found.push(`after the repair it sends ${is[0]}`);
  return [...new Set(found)];
}

/** Whether an agent does with a call or result what `check` says. */
function asTold({ onResume, toolUseId }, items) {
  const [calls, results] = ["call", "result"].map((wanted) => items.filter(({ kind, id }) => kind === wanted && id === toolUseId));
  if (onResume.includes("drops this call")) return !calls.length;
  if (onResume.includes("drops this result")) return results.length <= calls.length;
  const [, answer] = onResume.match(/answers this call "([^"]+)"/) ?? [];
  return calls.length === 1 && results.length === 1 && results[0].text === answer;
}

/** The items of each turn: messages of one side that follow each other are one for Anthropic. */
function turns(items) {
  const found = [];
  for (const item of items) found.at(-1)?.[0].role === item.role ? found.at(-1).push(item) : found.push([item]);
  return found;
}

/** How the ids of items begin. */
const IDS = { custom_tool_call: "ctc_", reasoning: "rs_" };

/** What OpenAI refuses of an item; Codex asks it to store none. */
function ofOpenAi({ kind, text }) {
  if (kind === "image") return /^(https?:|[A-Za-z0-9+/=]+$)/.test(text) ? [] : ["an image that is no URL"];
  if (!IDS[kind]) return [];
  const { id, content, encrypted_content: sealed } = JSON.parse(text);
  const found = id && !id.startsWith(IDS[kind]) ? ["the id of another kind of item"] : [];
  if (kind === "reasoning" && content?.length) found.push("reasoning with a content");
  return kind === "reasoning" && id && !sealed ? [...found, "reasoning that is not stored"] : found;
}

/** Whether a PNG has more than 2,000 pixels a side, which Anthropic refuses among more than 20 images. */
const isWide = (image) => image.length >= 24 && [16, 20].some((at) => image.readUInt32BE(at) > 2000);

/** What a provider refuses in what is sent. OpenAI does not ask for an order, nor for one result of a call. */
function faults(items, isOpenAi) {
  // Anthropic's calls are answered in the next turn.
  const only = (wanted, turn = []) => turn.filter(({ kind }) => kind === wanted);
  const groups = isOpenAi ? [items] : turns(items).map((turn, number, all) => [...only("call", turn), ...only("result", all[number + 1])]);
  const found = [];
  const answered = new Set();
  for (const group of groups) {
    const results = only("result", group);
    for (const call of only("call", group)) {
      const own = results.filter(({ id }) => id === call.id);
      for (const result of own) answered.add(result);
      if (!own.length) found.push("a call without its result");
      if (own.length > 1 && !isOpenAi) found.push("two results of one call");
    }
  }
  const images = isOpenAi ? [] : only("image", items).map(({ text }) => Buffer.from(text, "base64"));
  if (images.length > 20 && images.some(isWide)) found.push("a wide image among many");
  for (const item of items) {
    if (item.kind === "result" && item.id && !answered.has(item)) found.push("a result without its call");
    if (item.kind === "thinking" && !item.id) found.push("thinking without a signature");
    if (isOpenAi) found.push(...ofOpenAi(item));
    else if (item.kind === "image" && !IMAGES.some((begin) => begin.test(Buffer.from(item.text, "base64").toString("latin1")))) found.push("an image that is none");
  }
  return found;
}
