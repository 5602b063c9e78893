"""How a real agent is configured and launched against a proxy: pure functions to files, environment and command.

A module per harness. With capture off each gives back what it was given, to the byte. ``launching`` is what they have
in common, ``tap`` listens in on what a real client sends.
"""
