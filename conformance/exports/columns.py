"""Rows as columns: Arrow and Parquet, through pyarrow, which is an extra and imported only here and only when used."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from conformance.exports.errors import ExportError
from conformance.exports.rows import Row

JSON = Any

ROWS_AT_ONCE = 256
"""Rows of one record batch, so that a long file is never whole in memory."""


def _arrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-untyped]  # it has no types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise ExportError("pyarrow is not installed; pip install 'trackgauge[arrow]'") from None
    return pyarrow


def schema() -> Any:
    """Ids are 64 bits wide, log probs doubles: no bit of what was captured is lost."""
    arrow = _arrow()
    text = arrow.string()
    return arrow.schema(
        [
            arrow.field("rollout", text, nullable=False),
            arrow.field("session_id", text, nullable=False),
            arrow.field("parent", text),
            arrow.field("agent", text),
            arrow.field("outcome", text, nullable=False),
            arrow.field("withheld", arrow.bool_(), nullable=False),
            arrow.field("reason_code", text),
            arrow.field("model", text),
            arrow.field("record_uuids", arrow.list_(text), nullable=False),
            arrow.field("tokens", arrow.list_(arrow.int64()), nullable=False),
            arrow.field("mask", arrow.list_(arrow.int8()), nullable=False),
            arrow.field("log_probs", arrow.list_(arrow.float64()), nullable=False),
        ]
    )


def write_arrow(rows: Iterable[Row], file: Path) -> None:
    """An Arrow IPC file."""
    arrow = _arrow()
    with arrow.OSFile(str(file), "wb") as sink, arrow.ipc.new_file(sink, schema()) as writer:
        for batch in _batches(rows):
            writer.write_batch(batch)


def write_parquet(rows: Iterable[Row], file: Path) -> None:
    arrow = _arrow()
    with arrow.parquet.ParquetWriter(str(file), schema()) as writer:
        for batch in _batches(rows):
            writer.write_batch(batch)


def read_columns(file: Path) -> Iterator[dict[str, JSON]]:
    """The rows of an Arrow or Parquet file, whatever columns it has. Raises ExportError for a file that is neither."""
    arrow = _arrow()
    try:
        if file.suffix == ".parquet":
            for batch in arrow.parquet.ParquetFile(str(file)).iter_batches(batch_size=ROWS_AT_ONCE):
                yield from cast("list[dict[str, JSON]]", batch.to_pylist())
        else:
            with arrow.memory_map(str(file), "rb") as source, arrow.ipc.open_file(source) as reader:
                for number in range(reader.num_record_batches):
                    yield from cast("list[dict[str, JSON]]", reader.get_batch(number).to_pylist())
    except (OSError, arrow.ArrowException) as error:
        raise ExportError(f"{file}: {str(error).splitlines()[0]}") from None


def _batches(rows: Iterable[Row]) -> Iterator[Any]:
    arrow, form = _arrow(), schema()
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == ROWS_AT_ONCE:
            yield _batch(arrow, held, form)
            held = []
    if held:
        yield _batch(arrow, held, form)


def _batch(arrow: Any, held: Sequence[Row], form: Any) -> Any:
    try:
        return arrow.RecordBatch.from_pylist(list(held), schema=form)
    except (arrow.ArrowException, OverflowError, UnicodeError) as error:
        raise ExportError(f"a row of session {held[0]['session_id']!a} does not fit its columns: {error}") from None
