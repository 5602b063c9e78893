"""Rollouts as files that a trainer or a tool reads, and a check of the loss mask that any consumer can run."""
