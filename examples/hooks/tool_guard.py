"""A client of `tool-guard decide` for one process: it starts the guard, which ends with this process."""
import itertools
import json
import os
import subprocess
import threading
from concurrent.futures import Future


class ToolGuard:
    def __init__(self, *args: str):
        program = os.environ.get("TOOL_GUARD", "tool-guard")
        self._guard = subprocess.Popen([program, "decide", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ids, self._lock, self._waiting = itertools.count(1), threading.Lock(), {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._guard.stdout:
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).set_result(answer)
        with self._lock:
            for future in self._waiting.values():
                future.set_exception(RuntimeError("tool-guard has ended"))
            self._waiting = None

    def ask(self, event: str, **members) -> dict:
        """Sends an event; returns the answer. Raises if the guard does not run: then the call must not be made."""
        answer = Future()
        with self._lock:
            if self._waiting is None:
                raise RuntimeError("tool-guard has ended")
            number = next(self._ids)
            self._waiting[number] = answer
            line = {"event": event, "id": number, **{name: value for name, value in members.items() if value is not None}}
            self._guard.stdin.write(json.dumps(line) + "\n")
            self._guard.stdin.flush()
        answer = answer.result(timeout=30)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self):
        self._guard.stdin.close()
        self._guard.wait()
