#!/usr/bin/env node
// Claude Code's hook over `tool-guard decide --socket`: one process for each event. See docs/decide.md for settings.json.
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const state = process.env.XDG_STATE_HOME || join(homedir(), ".local/state");
const SOCKET = process.env.TOOL_GUARD_SOCKET || join(state, "tool-guard/claude-code.sock");
const GUARD = process.env.TOOL_GUARD || "tool-guard";
const READS = new Set(["Glob", "Grep", "LS", "NotebookRead", "Read", "WebFetch", "WebSearch"]);

/** One event, on a connection of its own. */
const once = (event) => new Promise((answered, failed) => {
  const socket = connect(SOCKET, () => socket.end(`${JSON.stringify(event)}\n`));
  socket.on("error", failed);
  text(socket).then((line) => answered(JSON.parse(line))).catch(failed);
});

/** Starts the guard if no guard listens; of several that start at once, one stays. */
async function ask(event) {
  for (const end = Date.now() + 10_000; ; await new Promise((later) => setTimeout(later, 50))) {
    try {
      return await once(event);
    } catch (error) {
      if (!["ENOENT", "ECONNREFUSED"].includes(error.code) || Date.now() > end) throw error;
      if (ask.started) continue;
      ask.started = spawn(GUARD, ["decide", "--socket", SOCKET, "--name", "claude-code"], { detached: true, stdio: "ignore" });
      ask.started.on("error", () => {}).unref();
    }
  }
}

const hook = JSON.parse(await text(process.stdin));
const name = hook.hook_event_name;
const call = { id: 1, session: hook.session_id, call: hook.tool_use_id };
const tell = (output) => console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: name, ...output } }));
const deny = (reason) => tell({ permissionDecision: "deny", permissionDecisionReason: reason });
const isRead = READS.has(hook.tool_name);

try {
  if (name === "UserPromptSubmit") await ask({ event: "turn_end", id: 1, session: hook.session_id });
  else if (name === "PreToolUse") {
    const effect = isRead ? "read_only" : undefined;
    const answer = await ask({ event: "before", ...call, tool: hook.tool_name, params: hook.tool_input, effect, client: "claude-code" });
    if (answer.decision === "block") deny(answer.reason);
    if (answer.decision === "rewrite") tell({ updatedInput: answer.params });
    if (answer.error) throw new Error(answer.error);
  } else {
    const end = { PostToolUse: { output: hook.tool_response ?? null }, PostToolUseFailure: { error: String(hook.error) } }[name];
    const { notes } = await ask({ event: "after", ...call, ...(end ?? { error: String(hook.reason), ran: "no" }) });
    if (notes && end) tell({ additionalContext: notes.join("\n") });
  }
} catch (error) {
  if (name === "PreToolUse" && !isRead) deny(`tool-guard does not run, so this call was not made: ${error.message}`);
  console.error(`tool-guard: ${error.message}`);
}
