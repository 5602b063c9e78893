"""``trackgauge demo``: what becomes of the tokens when each fake agent lives through the same five conversations."""
