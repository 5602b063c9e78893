"""The tools that Claude Code 2.1.197 offers: names, properties and required ones as recorded; descriptions are ours."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SCHEMA = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Tool:
    """One tool; ``properties`` maps each argument to its JSON type, in the order of the schema."""

    name: str
    properties: dict[str, str]
    required: tuple[str, ...] = ()

    def offered(self) -> dict[str, Any]:
        """The Messages-form definition; a tool that needs nothing has no ``required`` at all."""
        schema: dict[str, Any] = {
            "$schema": SCHEMA,
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in self.properties.items()},
        }
        if self.required:
            schema["required"] = list(self.required)
        schema["additionalProperties"] = False
        return {"name": self.name, "description": f"The tool {self.name}.", "input_schema": schema}


def _tool(name: str, required: str, optional: str = "", order: str = "") -> Tool:
    """A tool from words ``name`` or ``name:type``; ``order`` where the schema does not list required ones first."""
    words = {word.partition(":")[0]: word.partition(":")[2] or "string" for word in (required + " " + optional).split()}
    names = order.split() or list(words)
    return Tool(name, {word: words[word] for word in names}, tuple(word.partition(":")[0] for word in required.split()))


_ALL = (
    _tool("Agent", "description prompt", "subagent_type model run_in_background:boolean isolation"),
    _tool(
        "Bash",
        "command",
        "timeout:number description run_in_background:boolean dangerouslyDisableSandbox:boolean",
    ),
    _tool("CronCreate", "cron prompt", "recurring:boolean durable:boolean"),
    _tool("CronDelete", "id"),
    _tool("CronList", ""),
    _tool("Edit", "file_path old_string new_string", "replace_all:boolean"),
    _tool("EnterWorktree", "", "name path"),
    _tool("ExitWorktree", "action", "discard_changes:boolean"),
    _tool(
        "NotebookEdit",
        "notebook_path new_source",
        "cell_id cell_type edit_mode",
        order="notebook_path cell_id new_source cell_type edit_mode",
    ),
    _tool("Read", "file_path", "offset:number limit:number pages"),
    _tool("ReportFindings", "findings:array", "level", order="level findings"),
    _tool("ScheduleWakeup", "delaySeconds:number reason prompt"),
    _tool("SendMessage", "to message", "summary", order="to summary message"),
    _tool("Skill", "skill", "args"),
    _tool("TaskCreate", "subject description", "activeForm metadata:object"),
    _tool("TaskGet", "taskId"),
    _tool("TaskList", ""),
    _tool("TaskOutput", "task_id block:boolean timeout:number"),
    _tool("TaskStop", "", "task_id shell_id"),
    _tool(
        "TaskUpdate",
        "taskId",
        "subject description activeForm status addBlocks:array addBlockedBy:array owner metadata:object",
    ),
    _tool("WebFetch", "url prompt"),
    _tool("WebSearch", "query", "allowed_domains:array blocked_domains:array"),
    _tool("Workflow", "", "script name description title args:object scriptPath resumeFromRunId"),
    _tool("Write", "file_path content"),
)
TOOLS = {tool.name: tool for tool in _ALL}

_NOT_IN_SUBAGENTS = {"ScheduleWakeup", "TaskOutput", "Workflow"}
ROOT = tuple(TOOLS)
GENERAL_PURPOSE = tuple(name for name in ROOT if name not in _NOT_IN_SUBAGENTS)
EXPLORE = tuple(name for name in GENERAL_PURPOSE if name not in {"Agent", "Edit", "NotebookEdit", "Write"})
_KEPT_IN_BACKGROUND = {
    *("Agent", "Bash", "Edit", "EnterWorktree", "ExitWorktree", "NotebookEdit", "Read", "SendMessage", "Skill"),
    *("TaskStop", "WebFetch", "WebSearch", "Write"),
}
BACKGROUND = tuple(name for name in ROOT if name in _KEPT_IN_BACKGROUND)
BARE = ("Bash", "Edit", "Read")

WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
"""The server tool of the web search side call, which has nothing in common with the tool that starts it."""


def offered(names: Iterable[str]) -> list[dict[str, Any]]:
    return [TOOLS[name].offered() for name in names]
