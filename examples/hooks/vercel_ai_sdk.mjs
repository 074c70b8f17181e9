// Tools of the Vercel AI SDK behind `tool-guard decide`: wrap them, and give them to `generateText` as before.

const text = (output) => (typeof output === "string" ? output : JSON.stringify(output ?? null));

/** The same tools, each of whose calls the guard decides about. `reads` names those that change nothing. */
export function guarded(guard, tools, { session, turn, reads = [] }) {
  const wrap = ([name, tool]) => {
    if (!tool.execute) return [name, tool];
    const execute = async (params, options) => {
      const effect = reads.includes(name) ? "read_only" : undefined;
      const before = await guard.ask({ event: "before", tool: name, params, call: options.toolCallId, session, turn, effect });
      // The model gets the reason as the tool's answer: of a repeat, that is the recorded answer.
      if (before.decision === "block") return before.reason;
      const end = { event: "after", before: before.id };
      let output;
      try {
        output = await tool.execute(before.params ?? params, options);
      } catch (error) {
        const { notes = [] } = await guard.ask({ ...end, error: String(error.message) });
        throw notes.length ? new Error([error.message, ...notes].join("\n"), { cause: error }) : error;
      }
      const { notes } = await guard.ask({ ...end, output: output ?? null });
      return notes ? [text(output), ...notes].join("\n") : output;
    };
    return [name, { ...tool, execute }];
  };
  return Object.fromEntries(Object.entries(tools).map(wrap));
}
