// The cases of the table: what a turn of the real OpenClaw does without and with the plugin.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FILTERED, lastResult, model } from "./model.mjs";
import { run } from "./openclaw.mjs";

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
  return seen(scripted, turn);
}

/** What a turn shows. */
function seen({ requests, times }, { code, stdout, stderr }) {
  const isEnded = /agent run aborted|"summary": "aborted"/.test(stdout);
  const isFiltered = stdout.includes("Provider finish_reason: content_filter");
  if (code && !isEnded && !isFiltered) throw new Error(`${stdout}${stderr}`);
  // What the model read after each step.
  const read = requests.slice(1).map(lastResult);
  const isTold = (words) => JSON.stringify(requests.at(-1).messages).includes(words);
  const isQuick = requests.length <= 6 && times.at(-1) - times[1] <= 10_000;
  const end = `${requests.length} requests, then ${isEnded ? "ended" : "an answer"}`;
  return { isEnded, isTold, read, requests: requests.length, said: stderr, end: isEnded && isQuick ? "ended within 6 requests and 10 s of the first failure" : end };
}

/** A turn of a gateway of its own. */
async function playGateway(home, name, steps, settings, during = () => {}) {
  const scripted = await model(steps);
  home.configure(scripted.url);
  home.plugin(settings);
  const gateway = home.gateway();
  const stop = async () => (await gateway.end(), await scripted.close());
  try {
    await until("the gateway", () => gateway.isReady(), 120_000);
    await during();
    return { ...seen(scripted, await home.gatewayTurn(name)), pid: gateway.pid, scripted, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const count = (texts, part) => texts.filter((text) => text.includes(part)).length;
const missing = "File not found";

const LOOP = "[LOOP DETECTED]";
const LIMIT = "[TOOL ERROR LIMIT]";
const bare = times(10, (number) => read({}, number));
const reads = (turn, words) => (turn.isTold(words) ? `; the model reads \`${words}\`` : "");

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

/** Kills the agent that has this run. */
const KILL = 'p=$$; while [ $p -gt 1 ] && ! grep -qx openclaw-agent /proc/$p/comm; do p=$(cut -d" " -f4 /proc/$p/stat); done; [ $p -gt 1 ] && kill -9 $p; sleep 1';

/** A turn of the embedded agent, killed by its `exec`: the stored session ends with a call. */
async function killedInExec(home, name, settings = {}) {
  const scripted = await model([exec(KILL, 80)]);
  home.configure(scripted.url);
  if (home.installed) home.plugin(settings);
  const { code, stdout } = await home.turn(name);
  await scripted.close();
  if (code === 0 || scripted.requests.length !== 1) throw new Error(`not killed: ${stdout}`);
}

/** A turn as the next one, which may be blocked. */
async function resumed(home, name, settings) {
  const scripted = await model([]);
  home.configure(scripted.url);
  if (home.installed) home.plugin(settings);
  const { code, stdout, stderr } = await home.turn(name);
  await scripted.close();
  const [said, [request]] = [`${stdout}${stderr}`, scripted.requests];
  const isBlocked = !request && said.includes("(blocked by tool-guard)");
  if (code && !isBlocked) throw new Error(said);
  return { said, end: isBlocked ? `blocked, exit code ${code}` : "answered", read: request && lastResult(request).split("\n")[0] };
}

/** Runs the command that a turn names, as a person would. */
async function repairAsSaid({ said }) {
  const [command] = said.match(/tool-guard session repair .*?\.sqlite/) ?? [];
  const { code, stdout, stderr } = await run("sh", ["-c", command?.replace("tool-guard", process.env.TR_TOOL_GUARD) ?? "false"]);
  if (code) throw new Error(`${said}${stdout}${stderr}`);
}

/** A killed turn, the next one, the repair that is named there, and the one after that. */
async function named(home, name, autoRepair) {
  const settings = { hooks: { allowConversationAccess: true }, autoRepair };
  await killedInExec(home, name, settings);
  const turn = await resumed(home, name, settings);
  await repairAsSaid(turn);
  const { end, read, said } = await resumed(home, name, settings);
  const isNamed = said.includes(`session ${name} is not whole`);
  return `${turn.end}, and a repair is named; after it: ${isNamed ? "named again" : end}, the model reads \`${read}\``;
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
    const noted = texts.findIndex((text) => text.includes(missing) && text.includes(LOOP)) + 1;
    return `${count(texts, missing)} × run${noted ? `; a note on call ${noted}` : ""}`;
  }],
  ["8 different missing files (TG-2)", async (home) => {
    const turn = await play(home, "different", times(8, (number) => read({ path: `none-${number}.txt` }, number)));
    const limit = count(turn.read, `${LIMIT} 5 tool failures in this turn.`);
    return `${count(turn.read, missing)} × run${limit ? `, the rest refused with \`${LIMIT}\`` : ""}; ${turn.end}`;
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
    const turn = await play(home, "bare", bare);
    const lines = home.lines(home.log).slice(before).map((line) => JSON.parse(line));
    const models = [...new Set(lines.map((line) => line.model))].join();
    const next = await play(home, "bare", []);
    return `${turn.end}${reads(turn, LOOP)}; ${lines.length ? `logged, model \`${models}\`` : "not logged"}; the next turn is ${next.isEnded ? "ended" : "answered"}`;
  }],
  ["a gateway: `read({})`, 10 ×", async (home) => {
    const turn = await playGateway(home, "gateway-bare", bare, {});
    await turn.stop();
    return `${turn.end}${reads(turn, LOOP)}`;
  }, null],
  ["`read({})`, 10 ×, `steerModel: false`", async (home) => {
    const turn = await play(home, "unsteered", bare, { steerModel: false });
    return `${turn.end}${reads(turn, LOOP)}`;
  }, null],
  ["`read({})`, 10 ×, `endRuns: false`", async (home) => {
    const turn = await play(home, "endless", bare, { endRuns: false });
    return `${turn.end}${reads(turn, LOOP)}`;
  }, null],
  ["8 calls that OpenClaw refuses, all different (TG-2)", async (home) => {
    const turn = await play(home, "faults", times(8, (number) => read({ number }, number)));
    return `${turn.end}${reads(turn, LIMIT)}`;
  }],
  ["`exec` beside the second `read({})`, then again; `deriveKeys: session`", async (home) => {
    const ledger = join(home.path, "ledger-beside");
    const pay = (number) => exec(`echo paid >> ${ledger}; echo receipt 6`, number);
    const turn = await play(home, "beside", [read({}, 0), [read({}, 1), pay(70)], pay(71)], { deriveKeys: "session" });
    return `${home.lines(ledger).length} × run; the model reads \`${turn.read[1]}\`, then \`${turn.read[2]}\``;
  }],
  ["5 missing files, then an answer", async (home) => (await play(home, "few", times(5, (number) => read({ path: `none-${number}.txt` }, number)))).end],
  ["5 `grep`s that find nothing, then an answer", async (home) => (await play(home, "greps", times(5, (number) => exec(`grep -r ${number} none`, 50 + number)))).end],
  ["a content filter's end, then another turn", async (home) => {
    const before = home.lines(home.log).length;
    await play(home, "filtered", [FILTERED]);
    const types = home.lines(home.log).slice(before).map((line) => JSON.parse(line).type);
    const next = await play(home, "filtered", []);
    return `${types.length ? `logged, type \`${types.join()}\`` : "not logged"}; the next turn is ${next.isEnded ? "ended" : "answered"}`;
  }],
  ["killed in an `exec`, then the next turn", async (home) => {
    const repair = async () => {
      const repaired = await home.session("repair", "--write", "--close-tail", home.database);
      if (repaired.code) throw new Error(`${repaired.stdout}${repaired.stderr}`);
    };
    await killedInExec(home, "killed");
    const { read } = await resumed(home, "killed", {});
    await killedInExec(home, "repaired");
    await repair();
    const repaired = await resumed(home, "repaired", {});
    return `the model reads \`${read}\`; after \`tool-guard session repair --write --close-tail\`: \`${repaired.read}\``;
  }],
  ["the same, with `allowConversationAccess`", (home) => named(home, "mended", true), null],
  ["the same, `autoRepair: false`", (home) => named(home, "blocked", false), null],
  ["`tool-guard session` beside a gateway, after a killed turn", async (home) => {
    await killedInExec(home, "beside");
    const turn = await playGateway(home, "gateway-session", [exec("echo paid", 90)], {});
    const repair = () => home.session("repair", "--write", "--close-tail", "--session", "beside", home.database);
    const [checked, refused] = [await home.session("check", home.agents), await repair()];
    await turn.stop();
    const isNamed = refused.stderr.includes(`process ${turn.pid}`);
    const { code } = await repair();
    return `\`check\`: exit code ${checked.code}; \`repair\`: exit code ${refused.code}${isNamed ? ", with the gateway's process" : refused.stderr}; without the gateway: ${code}`;
  }, null],
  ["a gateway: a compaction, another turn, then `tool-guard session check`", async (home) => {
    const steps = times(12, (number) => exec(`head -c 9000 /dev/zero | tr '\\0' ${number.toString(12)}`, 100 + number));
    const { scripted, stop } = await playGateway(home, "compacted", steps, {});
    try {
      const { code, stdout, stderr } = await home.openclaw("sessions", "compact", "agent:main:explicit:compacted", "--json");
      if (code) throw new Error(`${stdout}${stderr}`);
      await home.gatewayTurn("compacted");
      // What OpenClaw adds to a request is not in the session.
      const isStored = ({ role, content }) => role !== "system" && !JSON.stringify(content).includes("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>");
      const sent = scripted.requests.at(-1).messages.filter(isStored).length;
      const checked = await home.session("check", "--json", "--session", "compacted", home.database);
      const { messages } = JSON.parse(checked.stdout);
      return `exit code ${checked.code}; ${sent + 1 === messages ? "it judges what was sent, and the answer" : `${sent} messages were sent, ${messages} are judged`}`;
    } finally {
      await stop();
    }
  }, null],
  ["without its program: `exec`, `write`, `read`", async (home) => {
    const ledger = join(home.path, "ledger-without");
    const steps = [exec(`echo run >> ${ledger}`, 60), { tool: "write", args: { path: "new.txt", content: "contents" }, id: id(61) }, read({ path: "new.txt" }, 62)];
    const turn = await play(home, "without", steps, { binary: "/no/such/tool-guard" });
    const made = home.lines(ledger).length + existsSync(join(home.work, "new.txt")) + turn.read[2].includes("contents");
    const named = turn.said.match(/cargo install [^\n]*/)?.[0];
    return `${made} of 3 made; in the log: \`${named}\``;
  }, null],
  ["the guard killed twice, `onFailure: reads`", (home) => killed(home, "reads"), null],
  ["the same, `onFailure: allow`", (home) => killed(home, "allow"), null],
  ["the same, `onFailure: block`", (home) => killed(home, "block"), null],
  ["a gateway: `exec` twice under one id; its guards, then after SIGTERM", async (home) => {
    const { program, alive } = watched(home);
    const ledger = join(home.path, "ledger-gateway");
    const steps = times(2, () => exec(`echo paid >> ${ledger}; echo receipt 9`, 40));
    const turn = await playGateway(home, "gateway", steps, { binary: program }, () => until("the gateway's guard", () => alive() > 0, 30_000));
    const running = alive();
    await turn.stop();
    await until("the guard's end", () => alive() === 0, 10_000);
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
