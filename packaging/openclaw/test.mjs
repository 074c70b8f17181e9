// The plugin over the real `tool-guard decide` (TR_TOOL_GUARD), without OpenClaw: `node --test test.mjs`.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, existsSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Agent } from "./agent.js";
import { start } from "./guard.js";
import plugin from "./index.js";

const manifest = JSON.parse(readFileSync(new URL("openclaw.plugin.json", import.meta.url), "utf8"));
const ID = "call_abcdEFGH1234567890ijKLmn";

/** OpenClaw, as far as the plugin sees it. */
function openclaw({ hooks: allowed = { allowConversationAccess: true }, ...settings } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tool-guard-plugin-"));
  const [hooks, warnings] = [{}, []];
  let middleware, service;
  const log = join(folder, "log");
  plugin.register({
    config: { plugins: { entries: { "tool-guard": { hooks: allowed } } } },
    pluginConfig: { binary: process.env.TR_TOOL_GUARD, records: join(folder, "records.db"), logPath: log, ...settings },
    runtime: { version: "test", state: { resolveStateDir: () => folder } },
    logger: { warn: (line) => warnings.push(line) },
    on: (name, handler) => (hooks[name] = handler),
    registerService: (registered) => (service = registered),
    registerAgentToolResultMiddleware: (handler) => (middleware = handler),
  });
  const host = {
    hooks, warnings, service, log, state: folder,
    run: (ctx) => hooks.before_agent_run({ prompt: "go on", messages: [] }, ctx),
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
    const host = openclaw({ onFailure, binary: "/bin/false" });
    assert.equal((await host.before("read", {}, "call_1"))?.block === true, read, onFailure);
    assert.equal((await host.before("exec", {}, "call_2"))?.block === true, exec, onFailure);
    assert.match(host.warnings.join("\n"), /exit code 1/);
    host.end();
  }
});

test("until the program is there, calls pass, and the log names what installs it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tool-guard-plugin-"));
  const binary = join(folder, "tool-guard");
  const host = openclaw({ onFailure: "block", binary, steerModel: false, endRuns: false });
  host.service.start();
  assert.equal(await host.before("exec", { command: "pay" }, ID), undefined);
  assert.equal(await host.after("exec", { command: "pay" }, ID, "declined"), true);
  assert.equal(host.warnings.length, 1, host.warnings.join("\n"));
  assert.match(host.warnings[0], /cargo install --path crates\/tool-guard/);
  symlinkSync(process.env.TR_TOOL_GUARD, binary);
  // The guard is started once more.
  assert.equal(await host.before("exec", { command: "pay" }, ID), undefined);
  await host.result("exec", { command: "pay" }, ID, "receipt 7");
  assert.deepEqual(await host.before("exec", { command: "pay" }, ID), { block: true, blockReason: "receipt 7" });
  host.end();
  rmSync(folder, { recursive: true, force: true });
});

/** A run, with an OpenClaw that has these functions; `said` is what they were called with. */
function running(settings = {}, functions = ["queueAgentHarnessMessage", "abortAgentHarnessRun"]) {
  const folder = mkdtempSync(join(tmpdir(), "tool-guard-plugin-"));
  const [said, warnings] = [[], []];
  const sdk = Object.fromEntries(functions.map((name) => [name, (session, text) => (said.push(text ?? `end ${session}`), true)]));
  const log = { warn: (line) => warnings.push(line) };
  const defaults = Object.entries(manifest.configSchema.properties).flatMap(([name, { default: value }]) => (value === undefined ? [] : [[name, value]]));
  const config = { ...Object.fromEntries(defaults), binary: process.env.TR_TOOL_GUARD, records: "memory", logPath: join(folder, "log"), ...settings };
  const { host, sidecar } = start({ config, client: "openclaw/test", log, agent: new Agent({ log, sdk: async () => sdk }) });
  let calls = 0;
  const ctx = (runId) => ({ sessionKey: "key", sessionId: "s", runId });
  const run = {
    said, warnings, sidecar,
    asks: async (runId = "r") => (host.onModel({ runId, sessionId: "s", provider: "script", model: "m" }), await new Promise(setImmediate)),
    /** OpenClaw refuses a call. */
    refuses: (toolName, params, details = {}, runId = "r") =>
      host.onAfter({ toolName, params, toolCallId: `call_${calls++}`, runId, error: `Validation failed for tool "${toolName}":`, result: { details } }, ctx(runId)),
    /** A call is made, and fails, or is refused by the guard. */
    async fails(toolName, params, runId = "r") {
      const event = { toolName, params, toolCallId: `call_${calls++}`, runId };
      if ((await host.onBefore(event, ctx(runId)))?.block) return "refused";
      await host.onResult({ ...event, args: params, isError: true, result: { content: [{ type: "text", text: `no ${JSON.stringify(params)}` }] } }, ctx(runId));
      return "made";
    },
    async skips(toolName, params, runId = "r") {
      const event = { toolName, params, toolCallId: `call_abcdEFGH1234567890ijKL${calls++}`, runId };
      const refused = await host.onBefore(event, ctx(runId));
      await host.onAfter({ ...event, result: { content: [{ type: "text", text: "Skipped" }], details: { status: "skipped" } } }, ctx(runId));
      return refused;
    },
    end: () => (sidecar.stop(), rmSync(folder, { recursive: true, force: true })),
  };
  return run;
}

const LOOP = `[LOOP DETECTED] Tool "read" failed 2 times with identical arguments. \nThis is a non-retryable error. Do NOT retry this call. \nTry a different approach or report the issue.`;
const LIMIT = "[TOOL ERROR LIMIT] 5 tool failures in this turn. \nStopping tool execution. Review your approach before continuing.";

test("a call that OpenClaw refuses again and again is told to the model, and ends the run", async () => {
  const run = running();
  for (const said of [[], [LOOP], [LOOP], [LOOP], [LOOP, "end s"], [LOOP, "end s", "end s"]]) {
    await run.asks();
    await run.refuses("read", {});
    assert.deepEqual(run.said, said);
  }
  assert.match(run.warnings.find((line) => line.includes("ends run")), /^tool-guard ends run r of session key: .* read /);
  const { reason } = await run.sidecar.ask({ event: "before", tool: "read", params: {}, session: "key", turn: "r" });
  assert.equal(reason, LOOP, "the guard has the same words");
  run.end();
});

test("calls of one request do not end a run, however many: the model has not read of them", async () => {
  const run = running();
  await run.asks();
  await Promise.all([1, 2, 3, 4, 5, 6].map(() => run.refuses("read", {})));
  assert.deepEqual(run.said, []);
  await run.asks();
  await Promise.all([1, 2, 3].map(() => run.refuses("read", {})));
  assert.deepEqual(run.said, [LOOP]);
  await run.asks();
  await run.refuses("read", {});
  assert.deepEqual(run.said, [LOOP, "end s"]);
  run.end();
});

test("five different refusals are too many failures, and the run ends if the model does not stop after the next", async () => {
  const run = running();
  for (const number of [1, 2, 3, 4, 5]) {
    await run.asks();
    assert.deepEqual(run.said, []);
    await run.refuses("read", { number });
  }
  assert.deepEqual(run.said, [LIMIT]);
  await run.asks();
  assert.equal(await run.fails("exec", { command: "ls" }), "refused");
  await run.refuses("read", { number: 1 });
  assert.deepEqual(run.said, [LIMIT]);
  await run.asks();
  await run.refuses("read", { number: 6 });
  assert.deepEqual(run.said, [LIMIT, "end s"]);
  const { reason } = await run.sidecar.ask({ event: "before", tool: "read", params: {}, session: "key", turn: "r" });
  assert.equal(reason, LIMIT, "the guard has the same words");
  run.end();
});

test("failures that differ end no run until its model ignores that its calls are refused", async () => {
  const run = running();
  await run.asks();
  const grep = (pattern) => run.fails("grep", { pattern });
  for (const pattern of ["a", "b", "c", "d", "e"]) assert.equal(await grep(pattern), "made");
  assert.equal(await grep("f"), "refused", "of the same request");
  assert.deepEqual(run.said, []);
  await run.asks();
  assert.deepEqual([await grep("g"), await grep("h")], ["refused", "refused"]);
  assert.deepEqual(run.said, [], "the model has not read that calls are refused");
  await run.asks();
  assert.deepEqual([await grep("i"), await grep("j")], ["refused", "refused"]);
  assert.deepEqual(run.said, ["end s"]);
  await run.asks("next");
  assert.equal(await run.fails("grep", { pattern: "a" }, "next"), "made");
  run.end();
});

test("a repeat has the same tool and the same arguments, in any order", async () => {
  const run = running({ maxFailuresPerTurn: 4 });
  const asked = [["read", { a: 1, b: 2 }], ["read", { a: 1 }], ["edit", { a: 1, b: 2 }], ["read", { b: 2, a: 1 }]];
  for (const [tool, params] of asked) {
    await run.asks();
    assert.deepEqual(run.said, []);
    await run.refuses(tool, params);
  }
  assert.deepEqual(run.said, [LIMIT.replace(5, 4)]);
  run.end();
});

test("what another plugin refuses ends no run", async () => {
  const run = running();
  for (const _ of [1, 2, 3, 4, 5, 6, 7]) {
    await run.asks();
    await run.refuses("read", {}, { status: "blocked" });
  }
  assert.deepEqual(run.said, [LOOP]);
  run.end();
});

test("a run is not ended when its session has a later one", async () => {
  const run = running();
  for (const _ of [1, 2, 3, 4]) {
    await run.asks();
    await run.refuses("read", {});
  }
  await run.asks();
  await run.asks("later");
  await run.refuses("read", {});
  assert.deepEqual(run.said, [LOOP]);
  run.end();
});

test("telling and ending are switched off one by one", async () => {
  for (const [settings, said] of [[{ steerModel: false }, ["end s"]], [{ endRuns: false }, [LOOP]], [{ steerModel: false, endRuns: false }, []]]) {
    const run = running(settings);
    for (const _ of [1, 2, 3, 4, 5]) {
      await run.asks();
      await run.refuses("read", {});
    }
    assert.deepEqual(run.said, said);
    run.end();
  }
});

test("an OpenClaw without the functions is said once, and calls are refused as ever", async () => {
  const run = running({}, []);
  for (const _ of [1, 2, 3, 4, 5, 6]) {
    await run.asks();
    await run.refuses("read", {});
  }
  assert.equal(await run.fails("read", {}), "refused");
  assert.equal(run.warnings.filter((line) => line.includes("queueAgentHarnessMessage and no abortAgentHarnessRun")).length, 1);
  run.end();
});

test("a call that OpenClaw skipped for a message may be made later", async () => {
  for (const [deriveKeys, skipped] of [["off", [1, 2, 3, 4, 5, 6, 7]], ["session", [1, 2]]]) {
    const run = running({ deriveKeys });
    for (const number of skipped) assert.equal(await run.skips("exec", { number }), undefined);
    assert.equal(await run.fails("exec", { number: 1 }), "made", deriveKeys);
    run.end();
  }
});

test("a plugin that is not enabled registers nothing", () => {
  const host = openclaw({ enabled: false });
  assert.deepEqual(host.hooks, {});
  host.end();
});

test("the plugin has these hooks, and one setting of sessions", () => {
  const host = openclaw();
  const names = ["after_tool_call", "before_agent_run", "before_message_write", "before_tool_call", "model_call_started"];
  assert.deepEqual(Object.keys(host.hooks).sort(), names);
  assert.deepEqual(Object.keys(manifest.configSchema.properties).filter((name) => /session|repair/i.test(name)), ["autoRepair"]);
  host.end();
});

test("without access to conversations it asks for before_agent_run only if it is to block", () => {
  for (const [settings, asks] of [[{}, false], [{ autoRepair: false }, true]]) {
    const host = openclaw({ hooks: {}, ...settings });
    assert.equal("before_agent_run" in host.hooks, asks);
    host.end();
  }
});

const PROMPT = { role: "user", content: "go on" };
const ended = (facts) => ({ role: "assistant", content: [], provider: "script", model: "m", stopReason: "error", ...facts });

test("an end by a content filter is logged, whatever the provider's words", () => {
  const forms = [
    { errorMessage: "Provider finish_reason: content_filter" },
    { errorMessage: "Provider incomplete_reason: content_filter" },
    { errorCode: "content_filter", errorMessage: "400 The response was filtered due to the prompt triggering Azure OpenAI's content management policy." },
    { errorCode: "content_filter" },
    { errorMessage: "Anthropic refusal (category: cyber).", diagnostics: [{ type: "provider_refusal" }] },
    { errorMessage: "refused", diagnostics: [{ type: "other" }, { type: "provider_refusal" }] },
    { errorMessage: "400 Output blocked by content filtering policy" },
  ];
  const host = openclaw();
  for (const form of forms) assert.equal(host.hooks.before_message_write({ message: ended(form) }, { sessionKey: "key" }), undefined);
  const lines = host.lines();
  assert.deepEqual(lines.map(({ error }) => error), forms.map(({ errorMessage = "" }) => errorMessage));
  const { timestamp, ...first } = lines[0];
  assert.ok(Date.parse(timestamp));
  assert.deepEqual(first, {
    type: "content_filter", sessionKey: "key", model: "script/m", provider: "script",
    error: "Provider finish_reason: content_filter", rolledBack: 0, client: "openclaw/test",
  });
  host.hooks.before_message_write({ message: ended({ errorCode: "content_filter", errorMessage: "x".repeat(1_000) }) }, {});
  assert.equal(host.lines().at(-1).error, "x".repeat(300));
  assert.deepEqual(host.warnings, []);
  host.end();
});

test("other messages are not logged, and a log that cannot be written breaks nothing", () => {
  const host = openclaw();
  const others = [
    PROMPT,
    { role: "toolResult", content: "Provider finish_reason: content_filter", isError: true },
    ended({ stopReason: "stop", errorMessage: "Provider finish_reason: content_filter" }),
    ended({ errorMessage: "Provider finish_reason: network_error" }),
    ended({ errorMessage: undefined, diagnostics: [] }),
    ended({ stopReason: "aborted" }),
    {},
  ];
  for (const message of others) assert.equal(host.hooks.before_message_write({ message }, {}), undefined);
  assert.deepEqual([host.lines(), host.warnings], [[], []]);
  host.end();
  const without = openclaw({ logPath: "/dev/null/log" });
  assert.equal(without.hooks.before_message_write({ message: ended({ errorCode: "content_filter" }) }, {}), undefined);
  assert.equal(without.hooks.before_message_write({}, {}), undefined);
  assert.equal(without.warnings.length, 2);
  without.end();
});

const FINDING = { status: "findings", pending: [], findings: [{ what: "Incomplete tool_use: call_1" }, { what: "another" }] };

/** What `before_agent_run` returns if the program is this script; `times` runs begin. */
async function begins(script, settings = {}, times = 1) {
  const folder = mkdtempSync(join(tmpdir(), "tool-guard-plugin-"));
  const binary = join(folder, "program");
  writeFileSync(binary, `#!/bin/sh\necho "$@" >> ${folder}/args\n${script}\n`, { mode: 0o755 });
  const host = openclaw({ binary, ...settings });
  let answer;
  for (let run = 0; run < times; run++) answer = await host.run({ agentId: "main", sessionId: "it's" });
  const args = existsSync(`${folder}/args`) ? readFileSync(`${folder}/args`, "utf8").split("\n") : [];
  const { warnings, state } = host;
  host.end();
  rmSync(folder, { recursive: true, force: true });
  return { answer, warnings, args, database: join(state, "agents/main/agent/openclaw-agent.sqlite") };
}

test("a run in a session with a fault goes on, and the log names its repair once", async () => {
  const { answer, warnings, args, database } = await begins(`echo '${JSON.stringify(FINDING)}'; exit 1`, {}, 2);
  assert.equal(answer, undefined);
  assert.equal(args[0], `session check --strict --json --session it's ${database}`);
  const repair = `tool-guard session repair --write --close-tail --session 'it'\\''s' ${database}`;
  assert.deepEqual(warnings, [`session it's is not whole: Incomplete tool_use: call_1. To repair it, stop OpenClaw, then: ${repair}`]);
});

test("with autoRepair off it is blocked, with the command", async () => {
  const { answer, warnings, database } = await begins(`echo '${JSON.stringify(FINDING)}'; exit 1`, { autoRepair: false });
  const { message, ...rest } = answer;
  assert.deepEqual(rest, { outcome: "block", reason: "session integrity", category: "integrity" });
  assert.ok(message.includes(`tool-guard session repair --write --close-tail --session 'it'\\''s' ${database}`), message);
  assert.equal(warnings.length, 1);
});

test("a call of the last step is a fault, too: nothing runs any more", async () => {
  const { warnings } = await begins(`echo '{"status":"findings","pending":["call_1"],"findings":[]}'; exit 1`);
  assert.match(warnings[0], /^session it's is not whole: Incomplete tool_use: call_1\. /);
});

test("a run passes whenever no fault is known", async () => {
  const scripts = ["exit 0", "exit 2", "exit 3", "exit 1", "echo nothing; exit 1", `echo '{"findings":[]}'; exit 1`, "kill -9 $$"];
  for (const script of scripts) assert.deepEqual((await begins(script, { autoRepair: false })).answer, undefined, script);
  const host = openclaw({ autoRepair: false });
  for (const ctx of [{ agentId: "main", sessionId: "s" }, { agentId: "main" }, { sessionId: "s" }, { agentId: "a\0", sessionId: "s" }, undefined]) {
    assert.equal(await host.run(ctx), undefined);
  }
  host.end();
  const missing = await begins("", { autoRepair: false, binary: "/no/such/tool-guard" });
  assert.equal(missing.answer, undefined);
});

test("manifest, package and module agree", () => {
  const own = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
  assert.deepEqual([manifest.id, manifest.name, manifest.version], ["tool-guard", "Tool Guard", own.version]);
  assert.deepEqual([plugin.id, plugin.name, plugin.description], [manifest.id, manifest.name, manifest.description]);
  assert.equal(manifest.configSchema.additionalProperties, false);
  const [, version] = readFileSync(new URL("../../Cargo.toml", import.meta.url), "utf8").match(/^version = "(.*)"$/m);
  assert.equal(own.version, version, "the version is the project's");
});

test("each setting has a hint, and the defaults are those of the manifest", () => {
  const { properties } = manifest.configSchema;
  assert.deepEqual(Object.keys(properties).sort(), Object.keys(manifest.uiHints).sort());
  const text = readFileSync(new URL("index.js", import.meta.url), "utf8");
  for (const [name, { default: value }] of Object.entries(properties)) {
    if (value !== undefined) assert.ok(text.includes(`${name}: ${JSON.stringify(value)}`), name);
  }
});
