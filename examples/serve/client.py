"""Calls tools behind `tool-guard serve`. Python's standard library, no packages.

    python3 client.py http://127.0.0.1:9480 pay '{"cents": 500}' order-42
"""

import json
import sys
import urllib.error
import urllib.request


def call(at, tool, params, key=None, cancellation_id=None, **more):
    """Returns the response: its `status`, and `result` or `error` with `code`, `ran` and `retryable`."""
    request = {"tool": tool, "action": "", "params": params}
    request["idempotencyKey"] = key
    request["cancellationId"] = cancellation_id
    return send(at + "/call", request, **more)


def cancel(at, cancellation_id, **more):
    """Cancels running calls, and says how many."""
    return send(at + "/cancel", {"cancel": cancellation_id}, **more)["cancelled"]


def send(url, body, session=None, token=None):
    headers = {"content-type": "application/json"}
    if session:
        headers["x-tool-guard-session"] = session
    if token:
        headers["x-tool-guard-token"] = token
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as refused:
        return json.load(refused)


if __name__ == "__main__":
    at, tool, params, *key = sys.argv[1:]
    print(json.dumps(call(at, tool, json.loads(params), *key)))
