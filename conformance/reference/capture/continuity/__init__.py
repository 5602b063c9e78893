"""Continuity: a call that extends a known chain is asked for with that chain's own tokens."""
