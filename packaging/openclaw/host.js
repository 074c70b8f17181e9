// What OpenClaw's hooks tell the guard, and what they are told. It knows neither processes nor OpenClaw's API.
import { appendFileSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname } from "node:path";
import { Recent } from "./recent.js";
import { LIMIT, LOOP, Runs, callOf } from "./runs.js";

/** OpenClaw's tools that change nothing. */
const READS = new Set([
  "agents_list", "find", "grep", "image", "ls", "memory_get", "memory_search", "pdf", "read", "session_status",
  "sessions_history", "sessions_list", "web_fetch", "web_search",
]);
/** How long a result may follow the report that a call has ended. */
const RESULT_WITHIN = 2_000;

const NOT_RUNNING =
  "tool-guard does not run, so this call was not made. Do not repeat it; a person can start the guard again, or set onFailure.";

const AFTER_LIMIT = "after too many failures, and after calls were refused for that, its model still calls tools";

export class Host {
  #sidecar;
  #agent;
  #config;
  #client;
  #log;
  /** Of each announced call the id of its event, until its end is told; `false` if it was refused. */
  #calls = new Recent();
  #runs;

  constructor({ sidecar, agent, config, client, log }) {
    this.#sidecar = sidecar;
    this.#agent = agent;
    this.#config = config;
    this.#client = client;
    this.#log = log;
    this.#runs = new Runs(config);
  }

  /** Starts what the first calls need. */
  prepare() {
    this.#sidecar.start();
    if (this.#config.steerModel || this.#config.endRuns) this.#agent.load();
  }

  /** Of `model_call_started`. */
  onModel(event) {
    this.prepare();
    this.#runs.asks(event);
  }

  /** Of `before_tool_call`: what that hook returns. */
  async onBefore(event, ctx = {}) {
    const name = key(event, ctx);
    const { run, request } = this.#run(event, ctx);
    let answer;
    try {
      answer = await this.#sidecar.ask(this.#before(event, ctx));
    } catch (error) {
      if (name) this.#calls.set(name, false);
      return this.#withoutGuard(event.toolName, error);
    }
    if (answer.decision === "block") {
      if (name) this.#calls.set(name, false);
      if (answer.code === "tool_error_limit") {
        run.limit(request);
        if (run.isIgnored()) this.#endRun(event, ctx, AFTER_LIMIT);
      }
      return { block: true, blockReason: answer.reason };
    }
    if (name) this.#calls.set(name, answer.id);
    if (answer.decision === "rewrite") return { params: answer.params };
  }

  /** Of the middleware for results: what that returns. */
  async onResult(event, ctx = {}) {
    const before = this.#take(key(event, ctx));
    if (!before) return;
    const { run, request } = this.#run(event, ctx);
    const { content } = event.result;
    if (event.isError) run.fails();
    const notes = await this.#end(this.#ended(before, event.result, event.isError === true));
    if (notes.length) run.counts();
    if (notes.some((note) => note.startsWith(LIMIT))) run.limit(request);
    if (!notes.length) return;
    const blocks = notes.map((text) => ({ type: "text", text }));
    return { result: { ...event.result, content: [...(content ?? []), ...blocks] } };
  }

  /** Of `after_tool_call`, which also sees calls that no other hook does. */
  async onAfter(event, ctx = {}) {
    const name = key(event, ctx);
    if (this.#calls.get(name) === false) return this.#calls.delete(name);
    if (this.#calls.has(name)) {
      if (isSkipped(event.result)) return this.#endWithout(name, event);
      // The result, with the text that the model reads, may still come.
      const timer = setTimeout(() => this.#endWithout(name, event), RESULT_WITHIN);
      return timer.unref();
    }
    if (event.error && !this.#calls.has(`done ${name}`)) await this.#refused(event, ctx);
  }

  async #endWithout(name, { error, result }) {
    const before = this.#take(name);
    if (before) await this.#end(error ? { before, error } : this.#ended(before, result));
  }

  /** The event of a call's end. */
  #ended(before, result, isError) {
    const output = result?.content ?? "";
    // Under an id of its own nobody asks for a skipped call again. With derived keys an equal call must be made.
    return isSkipped(result) && this.#config.deriveKeys !== "off" ? { before, error: "skipped", ran: "no" } : { before, output, isError };
  }

  /**
   * A call that OpenClaw itself refused, or another plugin. It counts as a failure of its turn, and it is logged. The model
   * reads OpenClaw's words alone, and its next request does not wait for this hook, so it is told before the guard is asked.
   */
  async #refused(event, ctx) {
    const { run, request } = this.#run(event, ctx);
    const call = callOf(event.toolName, event.params);
    run.refuse(call);
    const words = this.#config.steerModel && !run.ended && run.words(call, event.toolName);
    // What another plugin has blocked it may allow later.
    const isFinal = event.result?.details?.status !== "blocked";
    if (words) this.#agent.tell(ctx.sessionId, words);
    else if (run.isIgnored()) this.#endRun(event, ctx, AFTER_LIMIT);
    else if (isFinal && run.isRepeated(call)) this.#endRun(event, ctx, `its model repeats a call of ${event.toolName} that OpenClaw refuses`);
    try {
      const said = await this.#failed(event, ctx);
      if (said.length) run.counts();
      if (said.some((text) => text.startsWith(LOOP))) run.loops(call);
      if (said.some((text) => text.startsWith(LIMIT))) run.limit(request);
    } catch (error) {
      if (this.#sidecar.isFound) this.#log.warn(`a refused call of ${event.toolName} is not counted: ${error.message}`);
    }
  }

  /** Counts and logs the failure of a call that was not made; returns what the guard says to the model. */
  async #failed(event, ctx) {
    const answer = await this.#sidecar.ask(this.#before(event, ctx));
    if (answer.decision === "block") {
      this.#write(event, ctx, answer.code);
      return [answer.reason];
    }
    return (await this.#sidecar.ask({ event: "after", before: answer.id, error: event.error, ran: "no" })).notes ?? [];
  }

  #endRun(event, ctx, why) {
    const { run, id, request } = this.#run(event, ctx);
    if (!this.#config.endRuns || run.ended === request || !this.#runs.isNewest(id, ctx.sessionId)) return;
    if (!this.#agent.end(ctx.sessionId)) return;
    run.ended = request;
    this.#log.warn(`tool-guard ends run ${id} of session ${ctx.sessionKey ?? ctx.sessionId}: ${why}`);
  }

  /** The call's run, and the request of the model that asked for it. */
  #run(event, ctx) {
    const id = event.runId ?? ctx.runId;
    const run = this.#runs.of(id);
    return { run, id, request: run.request };
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

  #before(event, ctx) {
    const { toolName, params, args, toolCallId } = event;
    const { run, id } = this.#run(event, ctx);
    return {
      event: "before",
      tool: toolName,
      params: params ?? args ?? {},
      call: text(toolCallId ?? ctx.toolCallId),
      session: text(ctx.sessionKey ?? ctx.sessionId),
      turn: text(id),
      model: run.model,
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
    if (!this.#sidecar.isFound) return;
    this.#log.warn(`${tool} is not guarded: ${error.message}`);
    const { onFailure } = this.#config;
    if (onFailure === "allow" || (onFailure === "reads" && READS.has(tool))) return;
    return { block: true, blockReason: NOT_RUNNING };
  }

  /** The line that the guard writes for a failure, of a call that it does not count any more. */
  #write(event, ctx, code) {
    const { toolName, params, toolCallId } = event;
    const args = Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name, kind(value)]));
    const id = text(toolCallId ?? ctx.toolCallId);
    const provider = id?.startsWith("toolu_") ? "anthropic" : id?.startsWith("call") ? "fireworks/openai-compat" : "unknown";
    const model = this.#run(event, ctx).run.model ?? provider;
    const action = code === "tool_error_limit" ? "hard-cap" : "loop-detected";
    const line = {
      timestamp: new Date().toISOString(), model, provider, toolName, toolCallId: id, args,
      errorType: "non-retryable", action, client: this.#client,
    };
    append(this.#config.logPath, line);
  }
}

/** Adds a line to the attribution log. */
export function append(logPath, line) {
  const path = home(logPath);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
}

/** The path, with `~` as a shell has it. */
export function home(path) {
  return path.replace(/^~(?=\/|$)/, homedir());
}

/** Whether OpenClaw did not make the call, to hand a message on to the model first. */
const isSkipped = (result) => result?.details?.status === "skipped";
const text = (value) => (typeof value === "string" && value ? value : undefined);
const kind = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

function key(event, ctx) {
  const call = text(event.toolCallId ?? ctx.toolCallId);
  return call && `${event.runId ?? ctx.runId ?? ctx.sessionKey ?? ""} ${call}`;
}
