"""The shapes and closed vocabularies that systems under test and the suite agree on."""

CONTRACT_VERSION = "1.0"
