"""The real Claude Code through the proxy: one session in a custom header, its sub-agents told by their agent id."""

import pytest

from fakes.harnesses.claude_code import ClaudeCode, Environment
from harness_shims import claude_code
from tests.real_harness.stage import MODEL, Stage

pytestmark = pytest.mark.real_harness

HARNESS = "claude-code"


def fake(stage: Stage, session: str, **env) -> ClaudeCode:
    environment = Environment(
        custom_headers={claude_code.HEADER: session}, haiku_model=MODEL, subagent_model=MODEL, **env
    )
    return ClaudeCode(stage.proxy.url, model=MODEL, env=environment)


def test_commands_and_a_subagent_are_captured_in_one_session(stage: Stage) -> None:
    stage.script("claude_code")
    session = f"claude-{stage.run}"
    launch = claude_code.launch(stage.program, stage.url, MODEL, stage.task, session=session, home=stage.home, workspace=stage.workspace)
    played = stage.play(launch)
    answers = stage.judge([session])
    print('\n'.join(stage.compare(played.exchanges, stage.play_fake(fake(stage, session + "-fake")))))
    assert 0

def test_compact(stage: Stage) -> None:
    stage.script("claude_code_compaction")
    session = f"claude-{stage.run}"
    ex=[]
    for prompt, more in ((stage.task, ()), ("/compact", ("--continue",)), ("Go on.", ("--continue",))):
        launch = claude_code.launch(stage.program, stage.url, MODEL, prompt, session=session, arguments=more, **stage.setting())
        played = stage.play(launch)
        print(played.output[:400], stage.strays)
        ex += played.exchanges
    for e in ex: print(e.request.path, e.status, len(e.request.body_text), e.ended, e.request.body_text and [(m['role'], [p['type']+':'+p.get('text',p.get('thinking',''))[:40] for p in m['content']] if isinstance(m['content'], list) else 0)  for m in e.request.json_body()['messages']])
    for r in stage.ledger(): print(r['scope'], r['turn'], r['rule'], r['state'], r['off_script'], r['usage'])
    answers = stage.judge([session])
    print([(a['outcome'], a['withheld'], a['reason'], [len(t['record_uuids']) for t in a['trajectories']]) for a in answers])
    class F:
        async def run(self, task): return await fake(stage, session + "-fake").run(task, follow_ups=("/compact", "Go on."))
    fc = stage.play_fake(F())
    for e in fc.all_exchanges: print(e.request.path, e.status, len(e.request.body_text), e.ended, e.request.body_text and [(m['role'], [p['type']+':'+p.get('text',p.get('thinking',''))[:40] for p in m['content']] if isinstance(m['content'], list) else 0)  for m in e.request.json_body()['messages']])
    print('\n'.join(stage.compare(ex, fc)))
    assert 0
