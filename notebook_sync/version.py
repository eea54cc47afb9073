"""Which version this is, for those that the package itself is built on."""

from __future__ import annotations

__version__ = "0.1.0"
