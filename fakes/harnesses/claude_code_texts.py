"""What Claude Code says to the model in its own name, in our words; playbooks may look for these texts."""

IDENTITY = "You are a coding agent, run by its software kit."
SYSTEM = "Work in {cwd} on Linux as the model {model}, with the tools given. The repository is clean."
SUBAGENT_SYSTEM = "You are a sub-agent in {cwd}; another agent reads your last message."
DATE = "# currentDate\nToday is the day of the recording."
AGENT_TYPES = "Types of agents: general-purpose, Explore."
SKILLS = "There are no skills here yet."
TASK_REMINDER = "The task tools have not been used for a while; use them where they help."
SUMMARY = "This session is being continued from one that ran out of room. What happened so far:\n{summary}"
COMPACT = "Write a summary of this conversation so that the work can go on from it. Call no tool."
CAVEAT = "The next texts come from a command of the user; do not answer them."
COMPACT_COMMAND = "<command-name>/compact</command-name>"
CONTINUE = "Go on where you were."
NO_RESPONSE = "No response requested."
COMPACT_OUTPUT = "<local-command-stdout>Compacted.</local-command-stdout>"
NO_VISIBLE_OUTPUT = "Your last answer had nothing to show. Go on, or say that you are done."
CUT_SHORT = "Your answer was cut at the limit of its length. Go on directly from there, in smaller pieces."
MALFORMED_CALL = "Your tool call was malformed and could not be read. Try it again."
NO_CONTENT = "(no content)"
INTERRUPTED_CALL = "[Tool use interrupted]"
INTERRUPTED = "[Request interrupted by user]\n"
WEB_SEARCH_SYSTEM = "You carry out one web search with the tool given."
WEB_SEARCH = "Search the web for: {query}"
TITLE_SYSTEM = "Give the session of a coding agent a short title, as JSON."
QUEUED = "The user said meanwhile: {text}"
AGENT_ID = "agentId: {agent_id} (goes on with SendMessage)"
BACKGROUND = "The agent was started in the background.\nagentId: {agent_id}"
NOTIFICATION = """\
<task-notification>
<task-id>{agent_id}</task-id>
<tool-use-id>{call_id}</tool-use-id>
<output-file>tasks/{agent_id}.output</output-file>
<status>{status}</status>
<summary>The agent has {status}.</summary>
<note>Its last message is the result.</note>
<result>{result}</result>
<usage>unknown</usage>
</task-notification>"""


def reminder(text: str) -> str:
    """A text as the model is told it inside somebody else's message."""
    return f"<system-reminder>\n{text}\n</system-reminder>"
