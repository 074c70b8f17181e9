// What OpenClaw's hooks tell the guard, and what they are told. It knows neither processes nor OpenClaw's API.
import { appendFileSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname } from "node:path";

/** OpenClaw's tools that change nothing. */
const READS = new Set([
  "agents_list", "find", "grep", "image", "ls", "memory_get", "memory_search", "pdf", "read", "session_status",
  "sessions_history", "sessions_list", "web_fetch", "web_search",
]);
/** How many calls and runs are remembered. */
const MOST = 10_000;
/** How long a result may follow the report that a call has ended. */
const RESULT_WITHIN = 2_000;

const NOT_RUNNING =
  "tool-guard does not run, so this call was not made. Do not repeat it; a person can start the guard again, or set onFailure.";

/** A map that forgets the oldest. */
class Recent extends Map {
  set(key, value) {
    this.delete(key);
    if (this.size >= MOST) this.delete(this.keys().next().value);
    return super.set(key, value);
  }
}

export class Host {
  #sidecar;
  #config;
  #client;
  #log;
  /** Of each announced call the id of its event, until its end is told; `false` if it was refused. */
  #calls = new Recent();
  #models = new Recent();

  constructor({ sidecar, config, client, log }) {
    this.#sidecar = sidecar;
    this.#config = config;
    this.#client = client;
    this.#log = log;
  }

  /** Of `model_call_started`. */
  onModel({ runId, provider, model }) {
    if (runId) this.#models.set(runId, `${provider}/${model}`);
  }

  /** Of `before_tool_call`: what that hook returns. */
  async onBefore(event, ctx = {}) {
    const name = key(event, ctx);
    let answer;
    try {
      answer = await this.#sidecar.ask(this.#before(event, ctx));
    } catch (error) {
      return this.#withoutGuard(event.toolName, error);
    }
    if (answer.decision === "block") {
      if (name) this.#calls.set(name, false);
      return { block: true, blockReason: answer.reason };
    }
    if (name) this.#calls.set(name, answer.id);
    if (answer.decision === "rewrite") return { params: answer.params };
  }

  /** Of the middleware for results: what that returns. */
  async onResult(event, ctx = {}) {
    const before = this.#take(key(event, ctx));
    if (!before) return;
    const { content } = event.result;
    const notes = await this.#end({ before, output: content, isError: event.isError === true });
    if (!notes.length) return;
    const blocks = notes.map((text) => ({ type: "text", text }));
    return { result: { ...event.result, content: [...(content ?? []), ...blocks] } };
  }

  /** Of `after_tool_call`, which also sees calls that no other hook does. */
  async onAfter(event, ctx = {}) {
    const name = key(event, ctx);
    if (this.#calls.get(name) === false) return this.#calls.delete(name);
    if (this.#calls.has(name)) {
      // The result, with the text that the model reads, may still come.
      const timer = setTimeout(() => this.#endWithout(name, event), RESULT_WITHIN);
      return timer.unref();
    }
    if (event.error && !this.#calls.has(`done ${name}`)) await this.#refused(event, ctx);
  }

  async #endWithout(name, { error, result }) {
    const before = this.#take(name);
    if (before) await this.#end(error ? { before, error } : { before, output: result?.content ?? "" });
  }

  /** A call that OpenClaw itself refused, or another plugin. It counts as a failure of its turn, and it is logged. */
  async #refused(event, ctx) {
    try {
      const answer = await this.#sidecar.ask(this.#before(event, ctx));
      if (answer.decision === "block") return this.#write(event, ctx, answer.code);
      await this.#sidecar.ask({ event: "after", before: answer.id, error: event.error, ran: "no" });
    } catch (error) {
      this.#log.warn(`a refused call of ${event.toolName} is not counted: ${error.message}`);
    }
  }

  /** Tells the end of a call; returns the notes for the model. */
  async #end(event) {
    try {
      return (await this.#sidecar.ask({ event: "after", ...event })).notes ?? [];
    } catch (error) {
      this.#log.warn(`the end of a call is not recorded: ${error.message}`);
      return [];
    }
  }

  #before({ toolName, params, args, toolCallId, runId }, ctx) {
    const turn = runId ?? ctx.runId;
    return {
      event: "before",
      tool: toolName,
      params: params ?? args ?? {},
      call: text(toolCallId ?? ctx.toolCallId),
      session: text(ctx.sessionKey ?? ctx.sessionId),
      turn: text(turn),
      model: this.#models.get(turn),
      effect: READS.has(toolName) ? "read_only" : undefined,
      client: this.#client,
    };
  }

  #take(name) {
    const before = this.#calls.get(name);
    if (!this.#calls.delete(name)) return;
    this.#calls.set(`done ${name}`, true);
    return before;
  }

  #withoutGuard(tool, error) {
    this.#log.warn(`${tool} is not guarded: ${error.message}`);
    const { onFailure } = this.#config;
    if (onFailure === "allow" || (onFailure === "reads" && READS.has(tool))) return;
    return { block: true, blockReason: NOT_RUNNING };
  }

  /** The line that the guard writes for a failure, of a call that it does not count any more. */
  #write({ toolName, params, toolCallId }, ctx, code) {
    const args = Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name, kind(value)]));
    const id = text(toolCallId ?? ctx.toolCallId);
    const provider = id?.startsWith("toolu_") ? "anthropic" : id?.startsWith("call") ? "fireworks/openai-compat" : "unknown";
    const model = this.#models.get(ctx.runId) ?? provider;
    const action = code === "tool_error_limit" ? "hard-cap" : "loop-detected";
    const line = {
      timestamp: new Date().toISOString(), model, provider, toolName, toolCallId: id, args,
      errorType: "non-retryable", action, client: this.#client,
    };
    const path = home(this.#config.logPath);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }
}

/** The path, with `~` as a shell has it. */
export function home(path) {
  return path.replace(/^~(?=\/|$)/, homedir());
}

const text = (value) => (typeof value === "string" && value ? value : undefined);
const kind = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

function key(event, ctx) {
  const call = text(event.toolCallId ?? ctx.toolCallId);
  return call && `${event.runId ?? ctx.runId ?? ctx.sessionKey ?? ""} ${call}`;
}
