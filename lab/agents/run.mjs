// Loads the sessions in the real agents, before and after `tool-guard session repair --write`, and compares what they
// send with the table in docs/session.md; `--save` writes it. Words choose sessions, by folder and name.
// TR_AGENTS is the folder with the agents in node_modules, TR_TOOL_GUARD the program.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { changes, shown } from "./brief.mjs";
import { kept, missing } from "./kept.mjs";
import { AGENTS, sent } from "./oracle.mjs";
import { disagreements } from "./verdict.mjs";

const MARKS = ["<!-- agents: begin -->\n", "<!-- agents: end -->"];
const HEAD = "| session | agent | `check` | it sends | after `repair --write` | kept, not sent |\n|---|---|---|---|---|---|\n";
const sessions = fileURLToPath(new URL("sessions", import.meta.url));
const page = fileURLToPath(new URL("../../docs/session.md", import.meta.url));

/** The report of a command, with its exit code. */
function report(...words) {
  const call = (out, exit) => ({ ...JSON.parse(out), exit });
  try {
    return call(execFileSync(process.env.TR_TOOL_GUARD, ["session", ...words, "--json"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }), 0);
  } catch (error) {
    if (!error.stdout) throw error;
    return call(error.stdout, error.status);
  }
}

/** What the agents of a folder send; none runs any more then, even if one has failed. */
async function each(folder, file) {
  const all = await Promise.allSettled(AGENTS[folder].map((agent) => sent(agent, file)));
  const failed = all.find(({ reason }) => reason);
  if (failed) throw failed.reason;
  return all.map(({ value }) => value);
}

/** The rows of a session, and what is wrong with it. */
async function rows(folder, name) {
  const dir = mkdtempSync(join(tmpdir(), "session-"));
  const file = join(dir, "session.jsonl");
  try {
    copyFileSync(join(sessions, folder, name), file);
    const original = readFileSync(file, "utf8");
    const check = report("check", file);
    const before = await each(folder, file);
    // Nothing of what a kill has ended still runs.
    const isEnded = name.startsWith("killed");
    const repair = report("repair", "--write", ...(isEnded ? ["--close-tail"] : []), file);
    const written = readFileSync(file, "utf8");
    const isChanged = written !== original;
    const after = isChanged ? await each(folder, file) : before;
    const recheck = isChanged ? report("check", file) : check;
    const faults = check.exit === 0 && isChanged && !isEnded ? ["is clean, and was changed"] : [];
    const found = AGENTS[folder].map(({ title, version }, number) => {
      const lost = missing(kept(repair, original, written, before[number]), after[number]);
      faults.push(...lost.map((what) => `${title} ${version} does not send ${what}`));
      const seen = { check, recheck, isChanged, before: before[number], after: after[number] };
      const verdict = [judged(check), ...disagreements(folder, seen)].join("; **but** ");
      const shownAfter = isChanged ? changes(original, before[number], after[number]) : "unchanged";
      return { title, version, cells: [verdict, shown(original, before[number]), shownAfter, lost.join(", ") || "–"] };
    });
    return { faults, rows: together(found).map(({ who, cells }) => [name.replace(".jsonl", ""), who, ...cells]) };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Versions of an agent that do the same have one row. */
function together(found) {
  const all = found.map(({ cells }) => cells.join());
  if (all.every((cells) => cells === all[0])) return [{ who: found[0].title, cells: found[0].cells }];
  return found.map(({ title, version, cells }) => ({ who: `${title} ${version}`, cells }));
}

/** What `check` says: its exit code and its first finding. */
function judged({ exit, reason, findings: [first] = [] }) {
  if (!first) return `${exit}: ${reason ?? "clean"}`;
  const [what] = first.what.split(/: (?:toolu_|call_|parent)/);
  if (first.severity === "warning") return `${exit}: ${exit ? "not judged" : "clean, with a warning"}: ${what}`;
  const ofFile = first.fault === "phantom_parent" ? "an agent may see nothing before it" : "the agent reads it incorrectly";
  const [means] = (first.onResume ?? (first.providerError ? `${first.provider} refuses it` : ofFile)).split(/, silently|: /);
  return `${exit}: ${what}; ${means}`;
}

const [wanted, options] = [(word) => !word.startsWith("--"), (word) => word.startsWith("--")].map((kind) => process.argv.slice(2).filter(kind));
const all = [];
let isWrong = false;
for (const folder of Object.keys(AGENTS)) {
  for (const name of readdirSync(join(sessions, folder)).sort()) {
    if (wanted.length && !wanted.some((word) => `${folder}/${name}`.includes(word))) continue;
    const { faults, rows: found } = await rows(folder, name).catch(({ message }) => ({ faults: [message], rows: [] }));
    for (const row of found) console.log(row.join("\n    "));
    for (const fault of faults) console.error(`error: ${folder}/${name}: ${fault}`);
    isWrong ||= faults.length > 0;
    all.push(...found);
  }
}
if (isWrong) process.exit(1);
if (!wanted.length) {
  const versions = Object.values(AGENTS).flat().map(({ title, version }) => `${title} ${version}`);
  const text = `${versions.join(", ")}:\n\n${HEAD}${all.map((cells) => `| ${cells.join(" | ")} |\n`).join("")}`;
  const whole = readFileSync(page, "utf8");
  const [begin, end] = [whole.indexOf(MARKS[0]) + MARKS[0].length, whole.indexOf(MARKS[1])];
  if (options.includes("--save")) writeFileSync(page, whole.slice(0, begin) + text + whole.slice(end));
  else if (whole.slice(begin, end) !== text) {
    console.error("error: the table in docs/session.md differs: run with --save, and look at what has changed");
    process.exit(1);
  }
}
