"""The smallest rebuild that speaks the protocol: it takes one chain whose tokens continue, and withholds all else."""

import json
import sys


def rebuild(source):
    envelope = source["envelope"]
    records = sorted(envelope["completions"], key=lambda one: (one["captured_at"], one["uuid"]))
    held, items = [], []
    for record in records:
        prompt, generation = record["prompt_token_ids"], record["generation_token_ids"]
        if record["is_valid"] is not True or prompt[: len(held)] != held:
            return failed("tokens_continue", "the records are no single chain", record["uuid"])
        held = prompt + generation
        items.append({"type": "message", "role": "assistant", "content": record["messages"][-1]["content"],
                      "prompt_token_ids": prompt, "generation_token_ids": generation,
                      "generation_log_probs": record["generation_log_probs"]})  # fmt: skip
    trajectory = {"session_id": envelope["session_id"], "outcome": "clean", "withheld": False, "items": items,
                  "model": records[0]["model"], "record_uuids": [one["uuid"] for one in records]}  # fmt: skip
    return {"outcome": "clean", "withheld": False, "trajectories": [trajectory]}


def failed(rule, message, uuid=None):
    error = {"rule": rule, "record_uuid": uuid, "message": message}
    return {"outcome": "failed", "withheld": True, "reason": message, "error": error}


for line in sys.stdin:
    number = ""
    try:
        question = json.loads(line)
        number = question["id"]
        answer = rebuild(question["source"])
    except Exception as error:  # one answer a line, whatever the line holds
        answer = failed(type(error).__name__, str(error))
    sys.stdout.write(json.dumps({"id": number, **answer}) + "\n")
    sys.stdout.flush()
