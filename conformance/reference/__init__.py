"""The built-in systems: a capture proxy and a rebuild that keep the contract. One profile among others."""
