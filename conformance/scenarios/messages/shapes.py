"""The shapes of answers that a Messages client may get, each a scope of one turn."""

from conformance.gauge.scene import Playbook, load_playbook
from conformance.scenarios.messages.asking import tool
from conformance.scenarios.streams import shapes

TOOLS = [
    tool("execute_bash", "command", "timeout"),
    tool("think", "thought"),
    tool("list_files"),
    tool("write_file", "path", "text"),
]


def playbook() -> Playbook:
    """The shapes of chat answers, and those that matter to this dialect alone."""
    script, more = shapes.playbook(), load_playbook("messages_answers")
    return {**more, "scopes": {**script["scopes"], **more["scopes"]}}
