"""The OpenAI Responses dialect: a request in chat form, and the chat answer told back.

What has no counterpart in a chat call is one of three things. *Refused* with 400 before the engine is asked, because
leaving it out would change what the client means: stored state (``previous_response_id``, ``conversation``,
``item_reference``, ``prompt``), ``background``, items and parts of unknown types, a ``tool_choice`` of a tool that is
not offered. *Left out*, because the engine cannot do it: built-in and custom tools; the ``tools`` of the answer list
those that were really offered, so a client can tell. *Ignored*, because it changes no token: ``store``, ``include``,
``metadata``, cache keys, tiers, ``truncation``, ``client_metadata``. Top-level keys that the dialect does not know
(``top_k``, ``chat_template_kwargs``, …) go to the engine as they are.

A namespace of function tools (Codex offers its agents so) is offered as functions named ``namespace__function``; a
call of one comes back as ``name`` and ``namespace``. Reasoning is told as the summary of a reasoning item, the one
place of which clients send it back, and then reaches the engine as the ``reasoning`` of its turn.
"""
