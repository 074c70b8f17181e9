// A client of `tool-guard decide` for one process: it starts the guard, which ends with this process.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export function toolGuard(...args) {
  const guard = spawn(process.env.TOOL_GUARD ?? "tool-guard", ["decide", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  let last = 0;
  createInterface({ input: guard.stdout }).on("line", (line) => {
    const answer = JSON.parse(line);
    const { answered, failed } = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (answer.error) failed(new Error(answer.error));
    else answered(answer);
  });
  const ended = (why) => waiting.forEach(({ failed }) => failed(new Error(`tool-guard does not run: ${why}`)));
  guard.on("error", (error) => ended(error.message)).on("exit", (code) => ended(`exit code ${code}`));
  guard.stdin.on("error", () => {});
  return {
    ask: (event) => new Promise((answered, failed) => {
      if (guard.exitCode !== null) return failed(new Error("tool-guard does not run"));
      waiting.set(++last, { answered, failed });
      guard.stdin.write(`${JSON.stringify({ ...event, id: last })}\n`);
    }),
    close: () => guard.stdin.end(),
  };
}
