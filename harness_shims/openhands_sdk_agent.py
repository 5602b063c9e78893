"""One conversation of the real OpenHands SDK. Run by the interpreter that has the SDK: ``python FILE SETTINGS.json``.

It imports nothing of ours: that interpreter does not have it.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main(settings: dict[str, Any]) -> None:
    from openhands.sdk import LLM, Agent, Conversation, Tool  # type: ignore[import-not-found]
    from openhands.sdk.context.condenser import LLMSummarizingCondenser  # type: ignore[import-not-found]
    from openhands.tools.preset.default import (  # type: ignore[import-not-found]
        register_builtins_agents,
        register_default_tools,
    )

    register_default_tools(enable_browser=False)
    names = ["terminal", "file_editor"]
    if settings["subagents"]:
        from openhands.tools.task import TaskToolSet  # type: ignore[import-not-found]

        register_builtins_agents(enable_browser=False)
        names.append(TaskToolSet.name)
    llm = LLM(**settings["llm"])
    condenser = None
    if settings["condense_at"] is not None:
        condenser = LLMSummarizingCondenser(llm=llm, max_size=settings["condense_at"], keep_first=2)
    agent = Agent(llm=llm, tools=[Tool(name=name) for name in names], condenser=condenser)
    conversation = Conversation(agent=agent, workspace=settings["workspace"], visualizer=None)
    conversation.send_message(settings["prompt"])
    conversation.run()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
