// Stored sessions: ends by content filters go to the log, and a run asks first whether its session is whole.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { append } from "./host.js";
import { Recent } from "./recent.js";

/** OpenClaw waits 15 s for the hook. */
const CHECK_WITHIN = 8_000;
const MOST_OUTPUT = 16 * 1024 * 1024;
const MOST_WORDS = 300;

export class Sessions {
  #program;
  #config;
  #stateDir;
  #client;
  #log;
  #warned = new Recent();

  /** `stateDir` returns OpenClaw's folder of state. */
  constructor({ program, config, stateDir, client, log }) {
    this.#program = program;
    this.#config = config;
    this.#stateDir = stateDir;
    this.#client = client;
    this.#log = log;
  }

  /** Of `before_message_write`, which cannot wait. */
  onWrite({ message }, ctx = {}) {
    try {
      if (isFiltered(message)) this.#write(message, ctx);
    } catch (error) {
      this.#log.warn(`a content filter's end is not logged: ${error.message}`);
    }
  }

  /** Of `before_agent_run`: what that hook returns. OpenClaw blocks a run whose hook throws. */
  async onRun(event, ctx = {}) {
    try {
      return await this.#judge(ctx);
    } catch (error) {
      this.#log.warn(`a session is not checked: ${error.message}`);
    }
  }

  /** Only what is known to be faulty is blocked. */
  async #judge({ agentId, sessionId }) {
    if (!agentId || !sessionId) return;
    const database = join(this.#stateDir(), "agents", agentId, "agent", "openclaw-agent.sqlite");
    const fault = await this.#fault(database, sessionId);
    if (!fault) return;
    const repair = ["tool-guard session repair --write --close-tail --session", quoted(sessionId), quoted(database)].join(" ");
    const warning = `session ${sessionId} is not whole: ${fault}. To repair it, stop OpenClaw, then: ${repair}`;
    if (!this.#warned.has(warning)) this.#log.warn(warning);
    this.#warned.set(warning, true);
    if (this.#config.autoRepair) return;
    const message = `the stored session is not whole. A person can repair it while OpenClaw is stopped, with \`${repair}\``;
    return { outcome: "block", reason: "session integrity", category: "integrity", message };
  }

  /** The first fault of a stored session, if it is known to have one. No tool of it runs before its run begins. */
  #fault(database, session) {
    const args = ["session", "check", "--strict", "--json", "--session", session, database];
    const options = { timeout: CHECK_WITHIN, killSignal: "SIGKILL", maxBuffer: MOST_OUTPUT };
    return new Promise((resolve) => {
      execFile(this.#program, args, options, (error, stdout) => resolve(error?.code === 1 ? first(stdout) : undefined));
    });
  }

  #write({ model, provider, errorMessage = "" }, { sessionKey }) {
    append(this.#config.logPath, {
      timestamp: new Date().toISOString(), type: "content_filter", sessionKey, model: `${provider}/${model}`, provider,
      error: errorMessage.slice(0, MOST_WORDS), rolledBack: 0, client: this.#client,
    });
  }
}

const FILTERED =
  /^Provider (finish|incomplete)_reason: content_filter|^Anthropic refusal|content management policy|blocked by content filtering policy/;

/** Whether a content filter ended this answer. */
function isFiltered({ role, stopReason, errorCode, errorMessage = "", diagnostics }) {
  if (role !== "assistant" || stopReason !== "error") return false;
  return errorCode === "content_filter" || FILTERED.test(errorMessage) || diagnostics?.some(({ type }) => type === "provider_refusal") === true;
}

/** What `tool-guard session check --json` says first. */
function first(stdout) {
  try {
    const { findings, pending } = JSON.parse(stdout.split("\n")[0]);
    return findings[0]?.what ?? `Incomplete tool_use: ${pending[0]}`;
  } catch {
    return undefined;
  }
}

/** A word of a command for a shell. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);
