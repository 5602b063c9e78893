"""A rebuild that obeys its source: `{"envelope": {"say": …}}` tells what to write instead of an answer."""

import json
import os
import sys
import time


def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        order = question["source"]["envelope"]
        if order.get("say") == "junk":
            sys.stdout.write('loading the tokenizer…\n{"id": "another"}\n[]\n')
        while order.get("say") == "endless":
            sys.stdout.write("no answer\n" * 10_000)
        if order.get("say") == "flood":
            sys.stdout.write("x" * (1 << 20) + "\n")
        if order.get("say") == "nothing":
            sys.stdout.write("hm\n")
            sys.stdout.flush()
            time.sleep(1000)
        if order.get("say") == "die":
            sys.stderr.write("IndexError: list index out of range\n")
            sys.stderr.flush()
            os._exit(1)
        answer = {"id": question["id"], "outcome": "failed", "withheld": True, "pid": os.getpid(), "question": question}
        if order.get("say") == "formless":
            del answer["outcome"]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
