// A running `tool-guard decide`: events out, answers in, matched by id. It is started by the first event, and once
// more when it has ended; it ends with our process, which holds its standard input.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const ANSWER_WITHIN = 12_000;
const STEADY_AFTER = 60_000;
/** In the repository. */
const INSTALL = "cargo install --path crates/tool-guard --locked";

export class Sidecar {
  #program;
  #args;
  #env;
  #log;
  #child;
  #waiting = new Map();
  #last = 0;
  #restarts = 0;
  #started = 0;
  #stopped = false;
  #isFound = false;
  #isMissed = false;

  constructor({ program, args, env, log }) {
    this.#program = program;
    this.#args = args;
    this.#env = env;
    this.#log = log;
  }

  /** Starts the program, unless it runs. False if it has ended too often. */
  start() {
    if (this.#child) return true;
    if (this.#started && Date.now() - this.#started > STEADY_AFTER) this.#restarts = 0;
    if (this.#stopped || this.#restarts > 1) return false;
    this.#restarts += 1;
    this.#started = Date.now();
    const child = spawn(this.#program, this.#args, {
      env: { ...process.env, ...this.#env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    const ended = (why) => this.#ended(child, why);
    child.on("spawn", () => (this.#isFound = true));
    child.on("error", (error) => (this.#isFound ? ended(error.message) : this.#missing(child, error)));
    child.on("exit", (code, signal) => ended(signal ?? `exit code ${code}`));
    child.stdin.on("error", () => {});
    createInterface({ input: child.stdout }).on("line", (line) => this.#answered(line));
    createInterface({ input: child.stderr }).on("line", (line) => this.#log.warn(line));
    // It must not keep a process alive that has nothing else to do.
    child.unref();
    for (const stream of child.stdio) stream.unref?.();
    return true;
  }

  /** Sends an event. Rejects if there is no answer: then nothing is known of the call. */
  ask(event) {
    if (!this.start()) return Promise.reject(new Error("tool-guard does not run"));
    const id = ++this.#last;
    const answer = new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#settle(id, new Error("tool-guard gives no answer")), ANSWER_WITHIN);
      this.#waiting.set(id, { resolve, reject, timer, child: this.#child });
    });
    this.#child.stdin.write(`${JSON.stringify({ ...event, id })}\n`);
    return answer;
  }

  /** Whether the program was there at least once. */
  get isFound() {
    return this.#isFound;
  }

  /** The program's process id, while it runs. */
  get pid() {
    return this.#child?.pid;
  }

  stop() {
    this.#stopped = true;
    this.#child?.stdin.end();
  }

  #answered(line) {
    let answer;
    try {
      answer = JSON.parse(line);
    } catch {
      return this.#log.warn(`not an answer: ${line}`);
    }
    if (answer.error) return this.#settle(answer.id, new Error(answer.error));
    this.#settle(answer.id, undefined, answer);
  }

  #settle(id, error, answer) {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    if (error) waiting.reject(error);
    else waiting.resolve({ ...answer, id });
  }

  #missing(child, { message }) {
    if (!this.#isMissed) this.#log.warn(`calls are not guarded until tool-guard is installed (${message}): ${INSTALL}`);
    this.#isMissed = true;
    this.#ended(child, message);
  }

  #ended(child, why) {
    if (this.#child !== child) return;
    this.#child = undefined;
    if (this.#isFound && !this.#stopped) this.#log.warn(`tool-guard has ended: ${why}`);
    for (const [id, waiting] of this.#waiting) {
      if (waiting.child === child) this.#settle(id, new Error(`tool-guard has ended: ${why}`));
    }
  }
}
