"""The one exception the rebuild lets out: a typed trace error that names the record and the rule it broke."""

from enum import StrEnum

from conformance.contract.rebuilds import TraceErrorShape


class Rule(StrEnum):
    """What a record, an envelope or a request must be. A trace error names exactly one of them."""

    REQUEST = "request"
    NO_RECORDS = "no_records"
    SOURCE = "source"
    ENVELOPE = "envelope"
    RECORD_OBJECT = "record_object"
    SCHEMA_VERSION = "schema_version"
    SESSION_ID = "session_id"
    UUID = "uuid"
    UUID_UNIQUE = "uuid_unique"
    IS_VALID = "is_valid"
    REQUEST_ID = "request_id"
    MODEL = "model"
    PROMPT_TOKEN_IDS = "prompt_token_ids"
    GENERATION_TOKEN_IDS = "generation_token_ids"
    GENERATION_LOG_PROBS = "generation_log_probs"
    TOKEN_COUNT = "token_count"
    MESSAGES = "messages"
    ROLE = "role"
    CONTENT = "content"
    TOOL_CALL = "tool_call"
    LAST_MESSAGE = "last_message"
    TOOLS = "tools"
    NESTING = "nesting"
    EXTRAS = "x_trackgauge"


class TraceError(Exception):
    """Raised when a trace breaks a rule; ``record_uuid`` is null where no single record is to blame."""

    def __init__(self, rule: str, message: str, record_uuid: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.record_uuid = record_uuid

    def shape(self) -> TraceErrorShape:
        """The error as an answer carries it."""
        return TraceErrorShape(rule=self.rule, record_uuid=self.record_uuid, message=self.message)
