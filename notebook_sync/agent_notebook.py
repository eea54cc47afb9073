"""What agents do with a notebook beside reading and editing it: one method for each use case.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from notebook_sync.wiring import Wiring


class AgentNotebook(Wiring):
    """The use cases of agents. A `Notebook` has them all."""
