"""``trackgauge shapes``: named shapes of conversations, and what becomes of every token that was sampled in them."""
