"""A middleware for LangChain's agents over `tool-guard decide`: `create_agent(model, tools, middleware=[Guarded(guard)])`."""
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from tool_guard import ToolGuard


class Guarded(AgentMiddleware):
    """Asks the guard before and after each call. `reads` names the tools that change nothing."""

    def __init__(self, guard: ToolGuard, session: str | None = None, reads: frozenset[str] = frozenset()):
        super().__init__()
        self._guard, self._session, self._reads = guard, session, reads

    def before_agent(self, state, runtime):
        # A run of the agent is a turn.
        if self._session:
            self._guard.ask("turn_end", session=self._session)

    def wrap_tool_call(self, request, handler):
        call = request.tool_call
        effect = "read_only" if call["name"] in self._reads else None
        before = self._guard.ask(
            "before", tool=call["name"], params=call["args"], call=call["id"], session=self._session, effect=effect
        )
        answers = {"name": call["name"], "tool_call_id": call["id"]}
        if before["decision"] == "block":
            # Of a repeat, the reason is the recorded answer.
            is_answer = before["code"] == "replayed" and not before["result"]["isError"]
            return ToolMessage(before["reason"], status="success" if is_answer else "error", **answers)
        if before["decision"] == "rewrite":
            request = request.override(tool_call={**call, "args": before["params"]})
        try:
            message = handler(request)
        except Exception as error:
            self._guard.ask("after", before=before["id"], error=str(error))
            raise
        if not isinstance(message, ToolMessage):
            # A command to the graph: it ran.
            self._guard.ask("after", before=before["id"], output=str(message))
            return message
        is_error = message.status == "error"
        after = self._guard.ask("after", before=before["id"], output=message.text, isError=is_error)
        if notes := after.get("notes"):
            message.content = "\n".join([message.text, *notes])
        return message
