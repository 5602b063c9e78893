"""How a real agent is configured and launched against a proxy. Empty until the first real one is driven."""
