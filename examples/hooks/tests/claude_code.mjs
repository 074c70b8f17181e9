// The hook of Claude Code over the real guard (TR_TOOL_GUARD), without Claude Code: `node --test tests/claude_code.mjs`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const HOOK = fileURLToPath(new URL("../claude-code.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tool-guard-hook-"));
const [guard, pids] = [join(folder, "guard"), join(folder, "pids")];
// A program that notes its process id, and then is the guard.
writeFileSync(guard, `#!/bin/sh\necho $$ >> ${pids}\nexec ${process.env.TR_TOOL_GUARD} "$@"\n`, { mode: 0o755 });
const alive = () => readFileSync(pids, "utf8").trim().split("\n").filter((pid) => existsSync(`/proc/${pid}`)).map(Number);
after(() => (alive().forEach((pid) => process.kill(pid)), rmSync(folder, { recursive: true, force: true })));

/** Runs the hook as Claude Code does: a process for each event. */
async function hook(hook_event_name, members) {
  const env = { ...process.env, TOOL_GUARD: guard, XDG_STATE_HOME: folder };
  const child = spawn("node", [HOOK], { env, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(JSON.stringify({ session_id: "s", hook_event_name, ...members }));
  const said = await text(child.stdout);
  return said ? JSON.parse(said).hookSpecificOutput : undefined;
}

const bash = (number, command) => ({ tool_name: "Bash", tool_input: { command }, tool_use_id: `toolu_01AbCdEfGhIjKlMnOpQrSt${number}` });

test("a repeat is denied with the recorded answer, by one guard for all events", async () => {
  const call = bash("01", "pay");
  // Two hooks at once start one guard.
  const [first] = await Promise.all([hook("PreToolUse", call), hook("UserPromptSubmit", { prompt: "go" })]);
  assert.equal(first, undefined);
  assert.equal(await hook("PostToolUse", { ...call, tool_response: { stdout: "receipt 7" } }), undefined);
  const again = await hook("PreToolUse", call);
  assert.equal(again.permissionDecision, "deny");
  assert.match(again.permissionDecisionReason, /receipt 7/);
  assert.equal(alive().length, 1);
});

test("failures are noted, and then denied; a denied call is no failure; the next prompt starts from zero", async () => {
  await hook("UserPromptSubmit", { prompt: "go" });
  const notes = [];
  for (const number of ["11", "12"]) {
    const call = bash(number, "cat none");
    assert.equal(await hook("PreToolUse", call), undefined);
    notes.push(await hook("PostToolUseFailure", { ...call, error: "cat: none: No such file or directory" }));
  }
  assert.equal(notes[0], undefined);
  assert.match(notes[1].additionalContext, /LOOP DETECTED/);
  assert.match((await hook("PreToolUse", bash("13", "cat none"))).permissionDecisionReason, /LOOP DETECTED/);
  const denied = bash("14", "rm x");
  assert.equal(await hook("PreToolUse", denied), undefined);
  assert.equal(await hook("PermissionDenied", { ...denied, reason: "no" }), undefined);
  await hook("UserPromptSubmit", { prompt: "again" });
  assert.equal(await hook("PreToolUse", bash("15", "cat none")), undefined);
});

test("a guard that was killed is started again, and knows what it recorded", async () => {
  const [pid] = alive();
  process.kill(pid, "SIGKILL");
  const again = await hook("PreToolUse", bash("01", "pay"));
  assert.match(again.permissionDecisionReason, /receipt 7/);
  assert.equal(alive().filter((it) => it !== pid).length, 1);
});

test("without a guard reads are made, and nothing else", async () => {
  const gone = { env: { ...process.env, TOOL_GUARD: "/no/such/program", XDG_STATE_HOME: "/proc/none" } };
  const outcome = async (tool_name) => {
    const child = spawn("node", [HOOK], { ...gone, stdio: ["pipe", "pipe", "ignore"] });
    child.stdin.end(JSON.stringify({ hook_event_name: "PreToolUse", session_id: "s", tool_name, tool_input: {}, tool_use_id: "t" }));
    return text(child.stdout);
  };
  const [read, other] = await Promise.all([outcome("Read"), outcome("Bash")]);
  assert.equal(read, "");
  assert.match(other, /"deny"/);
});
