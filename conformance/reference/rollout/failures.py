"""What goes wrong on the way, raised within the task and handed over as data."""

from conformance.contract.rollouts import Failure, Stage


class RolloutFailed(Exception):
    """Raised when a rollout cannot go on; the stage and one line say where and why."""

    def __init__(self, stage: Stage, message: str, *, exit_code: int | None = None, tail: str = "") -> None:
        super().__init__(message)
        self.failure = Failure(stage=stage, message=" ".join(message.split()), exit_code=exit_code, tail=tail)


def unforeseen(stage: Stage, error: BaseException) -> Failure:
    """Any other exception as data."""
    return Failure(stage=stage, message=" ".join(f"{type(error).__name__}: {error}".split()))
