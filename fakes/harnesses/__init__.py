"""Fake agents: the requests and the loop of real clients, without a model, a network or a workspace.

``openhands_nv.OpenHandsNV`` and ``openhands_sdk.OpenHandsSDK`` play OpenHands, ``plain.PlainClient`` sends anything.
All of them tell what they sent and got as ``exchanges.Exchanges``.
"""
