// The guard of a gateway: the program with its options, and what the hooks ask it.
import { createRequire } from "node:module";
import { Agent } from "./agent.js";
import { Host, home } from "./host.js";
import { Sessions } from "./sessions.js";
import { Sidecar } from "./sidecar.js";

/** The program: as configured, of the package for this platform, or of the PATH. */
function program({ binary }) {
  if (binary) return home(binary);
  try {
    const require = createRequire(import.meta.url);
    return require.resolve(`@tool-reliability/${process.platform}-${process.arch}/bin/tool-guard`);
  } catch {
    return "tool-guard";
  }
}

export function start({ config, client, log, stateDir, agent = new Agent({ log }) }) {
  const path = program(config);
  const args = ["decide", `--attribution-log=${home(config.logPath)}`, "--derive-keys", config.deriveKeys, "--name", "openclaw"];
  for (const [option, value] of [["--records", config.records], ["--config", config.configFile], ["--catalog", config.catalogFile]]) {
    if (value) args.push(option, home(value));
  }
  const env = {
    TOOL_RELIABILITY__LOOPS__MAX_IDENTICAL: String(config.maxIdenticalFailures),
    TOOL_RELIABILITY__LOOPS__MAX_FAILURES_PER_TURN: String(config.maxFailuresPerTurn),
  };
  const sidecar = new Sidecar({ program: path, args, env, log });
  return {
    sidecar,
    host: new Host({ sidecar, agent, config, client, log }),
    sessions: new Sessions({ program: path, config, stateDir, client, log }),
  };
}
