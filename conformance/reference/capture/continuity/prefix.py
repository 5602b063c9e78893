"""The transport over ``required_prefix_token_ids``: a chat call whose history is given as tokens.

The server that knows the key (NeMo-RL's) renders the history alone, looks for its last end of a turn in the whole
prompt, and puts the prefix before it. Where the template leaves reasoning out of the history but not out of the history
alone, it looks too far behind, and a message of the user is lost. So the server's own tokenizer is asked first, which
splices in the same way: with the messages as they are, then without the reasoning that no prompt would show.
"""

from conformance.reference.capture.config import Route
from conformance.reference.capture.continuity.chains import REASONING_KEYS
from conformance.reference.capture.continuity.rendering import Renderer
from conformance.reference.capture.jsontext import JSONObject


async def chat_with_prefix(
    renderer: Renderer, route: Route, body: JSONObject, history: list[int], prompt: list[int]
) -> JSONObject | None:
    """The chat request whose prompt is ``prompt``, or None if the server would make another; raises NotRendered."""
    for messages in _ways_to_tell(body["messages"]):
        spliced = await renderer.prompt(route, body, messages, prefix=history)
        if spliced.ids == prompt:
            return {**body, "messages": messages, "required_prefix_token_ids": history}
    return None


def _ways_to_tell(messages: list[JSONObject]) -> list[list[JSONObject]]:
    bare = [
        {key: value for key, value in message.items() if key not in REASONING_KEYS}
        if message.get("role") == "assistant"
        else message
        for message in messages
    ]
    return [messages] if bare == messages else [messages, bare]
