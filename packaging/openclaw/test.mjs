// The plugin over the real `tool-guard decide` (TR_TOOL_GUARD), without OpenClaw: `node --test test.mjs`.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import plugin from "./index.js";

const manifest = JSON.parse(readFileSync(new URL("openclaw.plugin.json", import.meta.url), "utf8"));
const ID = "call_abcdEFGH1234567890ijKLmn";

/** OpenClaw, as far as the plugin sees it. */
function openclaw(settings = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tool-guard-plugin-"));
  const [hooks, warnings] = [{}, []];
  let middleware, service;
  const log = join(folder, "log");
  plugin.register({
    pluginConfig: { binary: process.env.TR_TOOL_GUARD, records: join(folder, "records.db"), logPath: log, ...settings },
    runtime: { version: "test" },
    logger: { warn: (line) => warnings.push(line) },
    on: (name, handler) => (hooks[name] = handler),
    registerService: (registered) => (service = registered),
    registerAgentToolResultMiddleware: (handler) => (middleware = handler),
  });
  const host = {
    hooks, warnings, service, log,
    before: (toolName, params, toolCallId, runId = "r") => hooks.before_tool_call({ toolName, params, toolCallId, runId }, { sessionKey: "s", runId }),
    result: (toolName, args, toolCallId, text, isError = false, runId = "r") =>
      middleware({ toolName, args, toolCallId, isError, result: { content: [{ type: "text", text }], details: 1 } }, { runtime: "openclaw", sessionKey: "s", runId }),
    after: (toolName, params, toolCallId, error, runId = "r") => hooks.after_tool_call({ toolName, params, toolCallId, error, runId }, { sessionKey: "s", runId }),
    lines: () => (existsSync(log) ? readFileSync(log, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)) : []),
    end: () => (service?.stop(), rmSync(folder, { recursive: true, force: true })),
  };
  return host;
}

test("a repeat gets the recorded answer, and is not made", async () => {
  const host = openclaw();
  assert.equal(await host.before("exec", { command: "pay" }, ID), undefined);
  assert.equal(await host.result("exec", { command: "pay" }, ID, "receipt 7"), undefined);
  assert.deepEqual(await host.before("exec", { command: "pay" }, ID), { block: true, blockReason: "receipt 7" });
  host.end();
});

test("notes go below the result, which keeps its other members", async () => {
  const host = openclaw();
  const results = [];
  for (const id of ["call_1", "call_2"]) {
    await host.before("read", { path: "x" }, id);
    results.push(await host.result("read", { path: "x" }, id, "no such file", true));
  }
  assert.equal(results[0], undefined);
  const { content, details } = results[1].result;
  assert.equal(details, 1);
  assert.match(content[1].text, /^\[LOOP DETECTED\] Tool "read" failed 2 times/);
  const { block, blockReason } = await host.before("read", { path: "x" }, "call_3");
  assert.ok(block && blockReason.includes("LOOP DETECTED"));
  // A refused call is told to `after_tool_call`, too, and is no failure of its own.
  await host.after("read", { path: "x" }, "call_3", blockReason);
  assert.equal(await host.before("read", { path: "x" }, "call_1", "another turn"), undefined);
  host.end();
});

test("a call that OpenClaw refused itself is logged each time, with its model", async () => {
  const host = openclaw();
  host.hooks.model_call_started({ runId: "r", provider: "script", model: "m" });
  for (const number of [1, 2, 3, 4]) {
    await host.after("read", {}, `call_${number}`, "Validation failed for tool \"read\":\n  - path: must have required properties path");
  }
  for (const end = Date.now() + 10_000; host.lines().length < 4 && Date.now() < end; ) await new Promise((later) => setTimeout(later, 20));
  const lines = host.lines();
  assert.deepEqual(lines.map(({ action }) => action).sort(), ["continue", "loop-detected", "loop-detected", "loop-detected"]);
  assert.ok(lines.every((line) => line.model === "script/m" && line.client === "openclaw/test" && line.errorType === "non-retryable"));
  const members = lines.map((line) => Object.keys(line).sort().join());
  assert.equal(new Set(members).size, 1, "lines of the guard and of the plugin have the same members");
  host.end();
});

test("without the guard, onFailure decides", async () => {
  for (const [onFailure, read, exec] of [["reads", false, true], ["allow", false, false], ["block", true, true]]) {
    const host = openclaw({ onFailure, binary: "/no/such/program" });
    assert.equal((await host.before("read", {}, "call_1"))?.block === true, read, onFailure);
    assert.equal((await host.before("exec", {}, "call_2"))?.block === true, exec, onFailure);
    assert.match(host.warnings.join("\n"), /ENOENT/);
    host.end();
  }
});

test("a plugin that is not enabled registers nothing", () => {
  const host = openclaw({ enabled: false });
  assert.deepEqual(host.hooks, {});
  host.end();
});

test("the plugin has hooks of tools and of the model's name, none of sessions", () => {
  const host = openclaw();
  assert.deepEqual(Object.keys(host.hooks).sort(), ["after_tool_call", "before_tool_call", "model_call_started"]);
  assert.deepEqual(Object.keys(manifest.configSchema.properties).filter((name) => /session/i.test(name)), []);
  host.end();
});

test("manifest, package and module agree", () => {
  const own = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
  assert.deepEqual([manifest.id, manifest.name, manifest.version], ["tool-guard", "Tool Guard", own.version]);
  assert.deepEqual([plugin.id, plugin.name, plugin.description], [manifest.id, manifest.name, manifest.description]);
  assert.equal(manifest.configSchema.additionalProperties, false);
});

test("each setting has a hint, and the defaults are those of the manifest", () => {
  const { properties } = manifest.configSchema;
  assert.deepEqual(Object.keys(properties).sort(), Object.keys(manifest.uiHints).sort());
  const text = readFileSync(new URL("index.js", import.meta.url), "utf8");
  for (const [name, { default: value }] of Object.entries(properties)) {
    if (value !== undefined) assert.ok(text.includes(`${name}: ${JSON.stringify(value)}`), name);
  }
});
