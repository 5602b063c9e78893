"""The rollout life cycle of the reference: spawn, ready, run harness, tear down, collect."""
