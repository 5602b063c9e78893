"""What a conforming system must do, as data."""

from conformance.requirements.catalogue import (
    Catalogue,
    Family,
    Origin,
    Requirement,
    load,
    missing,
)
from conformance.requirements.form import CatalogueError
from conformance.requirements.listing import counts, listing

__all__ = ["Catalogue", "CatalogueError", "Family", "Origin", "Requirement", "counts", "listing", "load", "missing"]
