"""The reference with one fault each, to prove that the scenarios bite."""
