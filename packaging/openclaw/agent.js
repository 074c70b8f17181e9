// A running agent: it is told something, or ended. OpenClaw calls the functions for that experimental.

const TELL = "queueAgentHarnessMessage";
const END = "abortAgentHarnessRun";

export class Agent {
  #import;
  #log;
  #sdk;

  constructor({ log, sdk = () => import("openclaw/plugin-sdk/agent-harness-runtime") }) {
    this.#import = sdk;
    this.#log = log;
  }

  /** Looks for the functions, once. */
  load() {
    this.#import?.().then(
      (sdk) => this.#found(sdk),
      () => this.#found({}),
    );
    this.#import = undefined;
  }

  /** Puts a message before the model's next request. Whether that is accepted. */
  tell(session, text) {
    return this.#call(TELL, session, text);
  }

  /** Ends the session's current run. Whether there was one. */
  end(session) {
    return this.#call(END, session);
  }

  #found(sdk) {
    this.#sdk = sdk;
    const missing = [TELL, END].filter((name) => typeof sdk[name] !== "function");
    if (!missing.length) return;
    this.#log.warn(`tool-guard: this OpenClaw has no ${missing.join(" and no ")}, so calls that it refuses itself are counted and logged only`);
  }

  #call(name, session, ...rest) {
    const call = this.#sdk?.[name];
    if (typeof call !== "function" || !session) return false;
    try {
      return call(session, ...rest) === true;
    } catch (error) {
      this.#log.warn(`${name}: ${error.message}`);
      return false;
    }
  }
}
