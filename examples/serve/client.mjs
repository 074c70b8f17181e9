// @ts-check
// Calls tools behind `tool-guard serve`. Plain Node 20 or newer, no packages.
//
//   node client.mjs http://127.0.0.1:9480 pay '{"cents": 500}' order-42

/**
 * @param {string} at where `tool-guard serve` listens
 * @param {string} tool
 * @param {object} params
 * @param {{key?: string, cancellationId?: string, session?: string, token?: string}} [more]
 * @returns {Promise<{status: string, result?: unknown, error?: {code: string, ran: string, retryable: boolean}}>}
 */
export async function call(at, tool, params, more = {}) {
  const response = await fetch(`${at}/call`, { method: "POST", headers: headers(more), body: JSON.stringify({
    tool, action: "", params, idempotencyKey: more.key, cancellationId: more.cancellationId,
  }) });
  return await response.json();
}

/** @param {string} at @param {string} id @param {{session?: string, token?: string}} [more] */
export async function cancel(at, id, more = {}) {
  const body = JSON.stringify({ cancel: id });
  const response = await fetch(`${at}/cancel`, { method: "POST", headers: headers(more), body });
  return /** @type {{cancelled: number}} */ (await response.json());
}

/** @param {{session?: string, token?: string}} more */
function headers({ session, token }) {
  /** @type {Record<string, string>} */
  const headers = { "content-type": "application/json" };
  if (session) headers["x-tool-guard-session"] = session;
  if (token) headers["x-tool-guard-token"] = token;
  return headers;
}

const [at, tool, params, key] = process.argv.slice(2);
if (import.meta.url === new URL(process.argv[1], "file://").href) {
  console.log(JSON.stringify(await call(at, tool, JSON.parse(params), { key })));
}
