"""Judges from the ledger, the exchanges and the contract. Reads JSON only; knows no system and no tokenizer."""
