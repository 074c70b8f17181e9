// Tool Guard for OpenClaw: a thin plugin over `tool-guard decide`, which decides and records.
import { start } from "./guard.js";

const DEFAULTS = {
  enabled: true,
  maxIdenticalFailures: 2,
  maxFailuresPerTurn: 5,
  logPath: "~/.openclaw/tool-guard.log",
  steerModel: true,
  endRuns: true,
  autoRepair: true,
  onFailure: "reads",
  deriveKeys: "off",
};
// A gateway may load this module twice; all of them share one guard.
const SHARED = Symbol.for("tool-reliability.openclaw");

/** The guard with this configuration; another one's is stopped. */
function shared(config, client, log, stateDir) {
  const name = JSON.stringify(config);
  const known = globalThis[SHARED];
  if (known?.name === name) return known;
  known?.sidecar.stop();
  return (globalThis[SHARED] = { name, ...start({ config, client, log, stateDir }) });
}

export default {
  id: "tool-guard",
  name: "Tool Guard",
  description: "Prevents malformed tool call loops with dedup detection, hard caps, and model attribution logging",
  register(api) {
    const config = { ...DEFAULTS, ...api.pluginConfig };
    if (!config.enabled) return;
    const client = `openclaw/${api.runtime?.version ?? "unknown"}`;
    const guard = () => shared(config, client, api.logger, () => api.runtime.state.resolveStateDir());
    api.registerService({
      id: "tool-guard",
      start: () => guard().host.prepare(),
      stop: () => {
        globalThis[SHARED]?.sidecar.stop();
        delete globalThis[SHARED];
      },
    });
    api.on("model_call_started", (event) => guard().host.onModel(event));
    api.on("before_tool_call", (event, ctx) => guard().host.onBefore(event, ctx));
    api.on("after_tool_call", (event, ctx) => guard().host.onAfter(event, ctx));
    api.on("before_message_write", (event, ctx) => guard().sessions.onWrite(event, ctx));
    // OpenClaw's doctor finds fault with this hook of a plugin that may not have it: right for one that is told to block.
    const isAllowed = api.config?.plugins?.entries?.["tool-guard"]?.hooks?.allowConversationAccess === true;
    if (isAllowed || !config.autoRepair) api.on("before_agent_run", (event, ctx) => guard().sessions.onRun(event, ctx));
    api.registerAgentToolResultMiddleware((event, ctx) => guard().host.onResult(event, ctx), { runtimes: ["openclaw", "codex"] });
  },
};
