"""Session ids in opencode's form."""

import secrets
import string

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def new_session_id() -> str:
    """``ses_``, twelve hex digits and fourteen of base 62: random, where the real one starts with a falling clock."""
    return f"ses_{secrets.token_hex(6)}{''.join(secrets.choice(_BASE62) for _ in range(14))}"
