"""The reference capture proxy: chat completions in front of an engine that returns its token ids."""
