"""What tells one context from another. Pure: no score, no time and no version is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any


def digest_of(spec: str, options: Mapping[str, Any], memories: Mapping[str, str]) -> str:
    """Of a spec, of what selects, and of the memories used with the digests of their files: equal for equal ones."""
    told = {"spec": sha256(spec.encode()).hexdigest(), "options": dict(options), "memories": sorted(memories.items())}
    return sha256(json.dumps(told, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
