// What is known of each run: its model, how its calls failed, and when the guard called that too much.
import { createHash } from "node:crypto";
import { Recent } from "./recent.js";

export class Runs {
  #limits;
  #runs = new Recent();
  /** Of each session the run that last asked its model. */
  #newest = new Recent();

  /** `limits` are the settings of these names. */
  constructor({ maxIdenticalFailures, maxFailuresPerTurn }) {
    this.#limits = { identical: maxIdenticalFailures, failures: maxFailuresPerTurn };
  }

  /** A run asks its model. */
  asks({ runId, sessionId, provider, model }) {
    if (!runId) return;
    const run = this.of(runId);
    run.model = `${provider}/${model}`;
    run.request += 1;
    if (sessionId) this.#newest.set(sessionId, runId);
  }

  /** The run of this id. One without an id is known for a moment only. */
  of(id) {
    if (!id) return new Run(this.#limits);
    if (!this.#runs.has(id)) this.#runs.set(id, new Run(this.#limits));
    return this.#runs.get(id);
  }

  /** Whether the session has no later run. */
  isNewest(id, session) {
    return this.#newest.get(session) === id;
  }
}

/** It counts requests of the model, which reads how a call has ended no earlier than in its next request. */
class Run {
  /** As the newest request names it. */
  model;
  request = 0;
  /** The request in which it was ended. */
  ended;
  #limits;
  #failures = 0;
  /** Whether the guard was seen to count this run's failures. */
  #isCounted = false;
  /**
   * Of each call that OpenClaw refused how often, and the newest requests when the guard first called it a loop and when the
   * model was told.
   */
  #refused = new Map();
  #isLimitTold = false;
  /** The newest request when there first were too many failures, and the first one whose calls were then refused. */
  #limit;
  #refusal;

  constructor(limits) {
    this.#limits = limits;
  }

  /** A call failed that was made. */
  fails() {
    this.#failures += 1;
  }

  /** OpenClaw refuses a call. Those that the guard calls a loop it does not count. */
  refuse(call) {
    const refused = this.#refused.get(call) ?? { times: 0 };
    refused.times += 1;
    if (refused.times <= this.#limits.identical) this.#failures += 1;
    this.#refused.set(call, refused);
  }

  /** What the model is to be told of a call that OpenClaw refused, each thing once. The guard says it too late for the next request. */
  words(call, tool) {
    const { identical, failures } = this.#limits;
    const refused = this.#refused.get(call);
    if (!this.#isCounted) return;
    if (this.#failures >= failures) {
      if (this.#isLimitTold) return;
      this.#isLimitTold = true;
      this.#limit ??= this.request;
      return tooMany(failures);
    }
    if (refused.times >= identical && refused.told === undefined) {
      refused.told = this.request;
      return loop(tool, identical);
    }
  }

  /** Whether OpenClaw has refused the call too often, and again after it was called a loop. */
  isRepeated(call) {
    const { times, loop, told = loop } = this.#refused.get(call);
    return times >= this.#limits.failures && loop < this.request && told < this.request;
  }

  /** Whether the model calls tools though calls of an earlier request were refused after too many failures. */
  isIgnored() {
    return this.request > this.#refusal;
  }

  /** The guard counts failures of this run. */
  counts() {
    this.#isCounted = true;
  }

  /** The guard calls a refused call a loop. */
  loops(call) {
    this.#refused.get(call).loop ??= this.request;
  }

  /** The guard says that there are too many failures, at a call of this request. */
  limit(request) {
    this.#limit ??= this.request;
    if (request > this.#limit) this.#refusal ??= request;
  }
}

export const LOOP = "[LOOP DETECTED]";
export const LIMIT = "[TOOL ERROR LIMIT]";

const loop = (tool, failures) =>
  `${LOOP} Tool "${tool}" failed ${failures} times with identical arguments. \nThis is a non-retryable error. Do NOT retry this call. \nTry a different approach or report the issue.`;
const tooMany = (failures) =>
  `${LIMIT} ${failures} tool failures in this turn. \nStopping tool execution. Review your approach before continuing.`;

/** What calls of a tool with the same arguments have in common. */
export function callOf(tool, params) {
  const sorted = (_, value) => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
  };
  return createHash("sha256").update(JSON.stringify([tool, params ?? {}], sorted)).digest("hex");
}
