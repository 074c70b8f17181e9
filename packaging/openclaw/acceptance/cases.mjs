// The cases of the table: what a turn of the real OpenClaw does without and with the plugin.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastResult, model } from "./model.mjs";

/** An id as providers draw them, and others like it. */
const id = (number) => `call_abcdEFGH1234567890ijK${String(number).padStart(3, "0")}`;
const exec = (command, number) => ({ tool: "exec", args: { command }, id: id(number) });
const read = (args, number) => ({ tool: "read", args, id: `call_${number}` });
const times = (count, of) => Array.from({ length: count }, (_, number) => of(number));

/** Waits for a condition. */
export async function until(what, holds, limit = 60_000) {
  for (const end = Date.now() + limit; !(await holds()); ) {
    if (Date.now() > end) throw new Error(`${what}: not within ${limit} ms`);
    await new Promise((later) => setTimeout(later, 100));
  }
}

/** One turn with these steps, in this home. */
async function play(home, name, steps, settings) {
  const scripted = await model(steps);
  home.configure(scripted.url);
  if (home.installed) home.plugin(settings ?? {});
  const turn = await home.turn(name);
  await scripted.close();
  if (turn.code) throw new Error(`${name}: ${turn.stdout}${turn.stderr}`);
  // What the model read after each step.
  const read = scripted.requests.slice(1).map(lastResult);
  return { requests: scripted.requests.length, read, said: turn.stderr };
}

const count = (texts, part) => texts.filter((text) => text.includes(part)).length;
const missing = "File not found";

/** A program that notes its process ids, and then is the guard. */
function watched(home) {
  const [program, pids] = [join(home.path, "watched"), join(home.path, "pids")];
  writeFileSync(program, `#!/bin/sh\necho $$ >> ${pids}\nexec ${process.env.TR_TOOL_GUARD} "$@"\n`, { mode: 0o755 });
  writeFileSync(pids, "");
  return { program, pids, alive: () => home.lines(pids).filter((pid) => existsSync(`/proc/${pid}`)).length };
}

/** The guard is killed twice in a turn, and is restarted once. */
async function killed(home, onFailure) {
  const { program, pids } = watched(home);
  const ledger = join(home.path, `ledger-${onFailure}`);
  writeFileSync(join(home.work, "here.txt"), "contents");
  const kill = `echo run >> ${ledger}; kill -9 $(tail -n 1 ${pids})`;
  const steps = [exec(`${kill}; true`, 0), exec(`${kill}; echo again`, 1), exec(`echo run >> ${ledger}`, 2), read({ path: "here.txt" }, 3)];
  const turn = await play(home, `killed-${onFailure}`, steps, { binary: program, onFailure });
  const reads = turn.read[3].includes("contents") ? "the read is made" : "the read is refused";
  return `${home.lines(ledger).length - 2} of 1 \`exec\` made, ${reads}`;
}

/** The rows: a name, and what is seen in a home with or without the plugin. `null`: only with it. */
export const CASES = [
  ["`exec` twice under one id (TR-3)", async (home) => {
    const ledger = join(home.path, "ledger-once");
    const turn = await play(home, "once", times(2, () => exec(`echo paid >> ${ledger}; echo receipt 7`, 10)));
    return `${home.lines(ledger).length} × run; the model reads \`${turn.read[1]}\``;
  }],
  ["`exec` twice under two ids, `deriveKeys: session`", async (home) => {
    const ledger = join(home.path, "ledger-derived");
    const steps = times(2, (number) => exec(`echo paid >> ${ledger}; echo receipt 8`, 20 + number));
    const turn = await play(home, "derived", steps, { deriveKeys: "session" });
    return `${home.lines(ledger).length} × run; the model reads \`${turn.read[1]}\``;
  }],
  ["one missing file, 8 × (TG-1, TG-4)", async (home) => {
    const { read: texts } = await play(home, "missing", times(8, (number) => read({ path: "none.txt" }, number)));
    const noted = texts.findIndex((text) => text.includes(missing) && text.includes("[LOOP DETECTED]")) + 1;
    return `${count(texts, missing)} × run${noted ? `; a note on call ${noted}` : ""}`;
  }],
  ["8 different missing files (TG-2)", async (home) => {
    const { read: texts } = await play(home, "different", times(8, (number) => read({ path: `none-${number}.txt` }, number)));
    const limit = count(texts, "[TOOL ERROR LIMIT] 5 tool failures in this turn.");
    return `${count(texts, missing)} × run${limit ? ", the rest refused with `[TOOL ERROR LIMIT]`" : ""}`;
  }],
  ["a success among 4 failures (TG-3)", async (home) => {
    writeFileSync(join(home.work, "here.txt"), "contents");
    const paths = ["none-a", "none-b", "here", "none-c", "none-d", "here"].map((name) => `${name}.txt`);
    const { read: texts } = await play(home, "mixed", paths.map((path, number) => read({ path }, number)));
    return `${count(texts, "contents")} of 2 successes`;
  }],
  ["`maxIdenticalFailures: 3` (TG-7)", async (home) => {
    const { read: texts } = await play(home, "three", times(5, (number) => read({ path: "none.txt" }, number)), { maxIdenticalFailures: 3 });
    const said = texts.at(-1).match(/failed (\d) times/)?.[0];
    return `${count(texts, missing)} × run${said ? `; \`${said}\`` : ""}`;
  }],
  ["the same missing file in the next turn (TG-6)", async (home) => {
    const steps = times(3, (number) => read({ path: "none.txt" }, number));
    const first = await play(home, "turns", steps);
    const second = await play(home, "turns", steps);
    return `${count(first.read, missing)} × and ${count(second.read, missing)} × run`;
  }],
  ["`read({})`, 10 × (TG-1, TG-5)", async (home) => {
    const before = home.lines(home.log).length;
    const turn = await play(home, "bare", times(10, (number) => read({}, number)));
    const lines = home.lines(home.log).slice(before).map((line) => JSON.parse(line));
    const models = [...new Set(lines.map((line) => line.model))].join();
    return `${turn.requests} requests of the model; ${lines.length} log lines${models ? `, model \`${models}\`` : ""}`;
  }],
  ["the guard killed twice, `onFailure: reads`", (home) => killed(home, "reads"), null],
  ["the same, `onFailure: allow`", (home) => killed(home, "allow"), null],
  ["the same, `onFailure: block`", (home) => killed(home, "block"), null],
  ["a gateway: `exec` twice under one id; its guards, then after SIGTERM", async (home) => {
    const { program, alive } = watched(home);
    const ledger = join(home.path, "ledger-gateway");
    const scripted = await model(times(2, () => exec(`echo paid >> ${ledger}; echo receipt 9`, 40)));
    home.configure(scripted.url);
    home.plugin({ binary: program });
    const gateway = home.gateway();
    await until("the gateway", () => gateway.isReady(), 120_000);
    await until("the gateway's guard", () => alive() > 0, 30_000);
    const turn = await home.gatewayTurn("gateway");
    const running = alive();
    await gateway.end();
    await until("the guard's end", () => alive() === 0, 10_000);
    await scripted.close();
    if (turn.code) throw new Error(`${turn.stdout}${turn.stderr}`);
    return `${home.lines(ledger).length} × run; ${running} guard, then ${alive()}`;
  }, null],
  ["wrong settings (TG-7)", async (home) => {
    const scripted = await model([]);
    home.configure(scripted.url);
    home.plugin({ maxFailuresPerTurn: "many" });
    const checked = await home.openclaw("config", "validate");
    await scripted.close();
    home.plugin({});
    const said = `${checked.stdout}${checked.stderr}`;
    return checked.code && said.includes("maxFailuresPerTurn") ? "refused, with the key's name" : `accepted: ${said}`;
  }, null],
  ["`plugins inspect --runtime`, `doctor`, `disable`: then `exec` twice under one id", async (home) => {
    const codes = [];
    for (const command of [["plugins", "inspect", "tool-guard", "--runtime", "--json"], ["plugins", "doctor"], ["plugins", "disable", "tool-guard"]]) {
      codes.push((await home.openclaw(...command)).code);
    }
    const ledger = join(home.path, "ledger-disabled");
    const scripted = await model(times(2, () => exec(`echo paid >> ${ledger}`, 30)));
    home.configure(scripted.url);
    await home.turn("disabled");
    await scripted.close();
    return `exit codes ${codes.join(", ")}; ${home.lines(ledger).length} × run`;
  }, null],
  ["`plugins uninstall`", async (home) => {
    const { code, stdout, stderr } = await home.openclaw("plugins", "uninstall", "tool-guard", "--force");
    if (code) throw new Error(`${stdout}${stderr}`);
    const inspected = await home.openclaw("plugins", "inspect", "tool-guard");
    const left = home.config.plugins?.entries?.["tool-guard"];
    return `exit code ${code}; ${inspected.code ? "OpenClaw knows it no more" : "still known"}${left ? `; left in its settings: \`${JSON.stringify(left)}\`` : ""}`;
  }, null],
];

/** The table as Markdown. */
export function table(rows) {
  const head = "| case | without the plugin | with it |\n|---|---|---|\n";
  return head + rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

const MARKS = ["<!-- table: begin -->\n", "<!-- table: end -->"];

/** The table that a page has, and the page with another one. */
export function inPage(page, text) {
  const whole = readFileSync(page, "utf8");
  const [begin, end] = [whole.indexOf(MARKS[0]) + MARKS[0].length, whole.indexOf(MARKS[1])];
  return { had: whole.slice(begin, end), page: whole.slice(0, begin) + text + whole.slice(end) };
}
