// Opens the built site as a reader's browser does: its first page, and a search with its own program and index.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const site = process.argv[2];
const read = (file) => readFileSync(join(site, file), "utf8");
const faults = [];

const first = read("index.html");
for (const words of ["2 payments", "tool-guard install claude-code"]) {
  if (!first.includes(words)) faults.push(`the first page does not show: ${words}`);
}

// What a reader may type, and the page that has to be among the first five.
const SEARCHES = [
  ["circuit breaker", "docs/breaker.html"],
  ["install cursor", "docs/install.html"],
  ["idempotency key", "docs/idempotency.html"],
  ["upstream", "docs/mcp-http.html"],
  ["orphaned tool_result", "docs/session.html"],
  ["loop guard", "docs/loopguard.html"],
  ["shadow mode", "docs/rollout.html"],
  ["reqwest-middleware", "docs/migrating.html"],
];
const file = (begin) => readdirSync(site).find((name) => name.startsWith(begin) && name.endsWith(".js"));
const browser = vm.createContext({ search: {} });
browser.window = browser;
for (const script of [file("elasticlunr"), file("searchindex")]) vm.runInContext(read(script), browser);
const { index, doc_urls: urls, search_options: options } = browser.search;
const searched = browser.elasticlunr.Index.load(index);
for (const [words, page] of SEARCHES) {
  const found = searched.search(words, options).slice(0, 5).map(({ ref }) => urls[ref]);
  if (!found.some((url) => url.split("#")[0] === page)) {
    faults.push(`a search for "${words}" does not find ${page}, but ${found.join(", ") || "nothing"}`);
  }
}

if (faults.length) {
  console.error(faults.join("\n"));
  process.exit(1);
}
console.log(`${SEARCHES.length} searches in ${urls.length} sections find their pages`);
