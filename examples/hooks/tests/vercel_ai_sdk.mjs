// The real Vercel AI SDK with a scripted model, and tools behind the guard: `node tests/vercel_ai_sdk.mjs`.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { toolGuard } from "../tool_guard.mjs";
import { guarded } from "../vercel_ai_sdk.mjs";

// The package is where `cargo lab peers` has installed it.
const require = createRequire(pathToFileURL(join(process.env.TR_HOOKS, "index.js")));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const [{ generateText, stepCountIs, tool }, test, { z }] = [await load("ai"), await load("ai/test"), await load("zod")];
const Model = Object.entries(test).find(([name]) => /^MockLanguageModelV\d$/.test(name))[1];

/** What the model reads after each of these calls. */
async function turn(tools, calls) {
  const prompts = [];
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 }, totalTokens: 2 };
  const model = new Model({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt);
      const call = calls[prompts.length - 1];
      const content = call
        ? [{ type: "tool-call", toolCallId: call.id, toolName: call.tool, input: JSON.stringify(call.args) }]
        : [{ type: "text", text: "done" }];
      return { content, finishReason: call ? { unified: "tool-calls", raw: "tool_calls" } : { unified: "stop", raw: "stop" }, usage, warnings: [] };
    },
  });
  await generateText({ model, tools, prompt: "go on", stopWhen: stepCountIs(20) });
  return prompts.slice(1).map((prompt) => JSON.stringify(prompt.at(-1)));
}

let paid = 0;
let reads = 0;
const tools = {
  pay: tool({ inputSchema: z.object({ cents: z.number() }), execute: async () => `receipt ${++paid}` }),
  read: tool({ inputSchema: z.object({ path: z.string() }), execute: async () => { reads += 1; throw new Error("no such file"); } }),
};
const guard = toolGuard("--records", "memory", "--log", "off");
const behind = guarded(guard, tools, { session: "s", turn: "t", reads: ["read"] });
const pay = { tool: "pay", args: { cents: 500 }, id: "call_abcdEFGH1234567890ijKLmn" };
const answers = await turn(behind, [pay, pay]);
assert.equal(paid, 1);
assert.ok(answers.every((answer) => answer.includes("receipt 1")), answers);
const failures = await turn(behind, [1, 2, 3].map((number) => ({ tool: "read", args: { path: "x" }, id: `call_${number}` })));
assert.equal(reads, 2);
assert.ok(!failures[0].includes("LOOP") && failures[1].includes("no such file") && failures[1].includes("LOOP DETECTED"), failures);
assert.ok(failures[2].includes("LOOP DETECTED"), failures);
guard.close();
console.log("Vercel AI SDK: a repeat ran once, the third failing call did not run");
