// Runs the cases on the real OpenClaw, and compares them with the table in README.md; `--save` writes it.
// TR_OPENCLAW is the folder with OpenClaw and Node 24 in node_modules, TR_TOOL_GUARD the program.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CASES, inPage, table } from "./cases.mjs";
import { Home, modules } from "./openclaw.mjs";

const wanted = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const [without, withPlugin] = [new Home(), new Home()];
const rows = [];
try {
  withPlugin.configure("http://127.0.0.1:9/v1");
  await withPlugin.install();
  for (const [name, play, alone] of CASES) {
    if (wanted.length && !wanted.some((word) => name.includes(word))) continue;
    const row = [name];
    for (const home of [without, withPlugin]) {
      row.push(home === without && alone === null ? "–" : await play(home).catch((error) => `failed: ${error.message}`));
    }
    console.log(row.join("\n    "));
    rows.push(row);
  }
} finally {
  without.remove();
  withPlugin.remove();
}
const { version } = JSON.parse(readFileSync(join(modules, "openclaw/package.json"), "utf8"));
const text = `OpenClaw ${version}:\n\n${table(rows)}`;
const readme = fileURLToPath(new URL("../README.md", import.meta.url));
const { had, page } = inPage(readme, text);
if (wanted.length) process.exit(rows.some((row) => row.join().includes("failed:")) ? 1 : 0);
if (process.argv.includes("--save")) writeFileSync(readme, page);
else if (had !== text) {
  console.error("the table in packaging/openclaw/README.md differs: run with --save, and look at what has changed");
  process.exit(1);
}
