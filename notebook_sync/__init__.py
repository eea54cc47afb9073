"""A file-first Markdown notebook for AI agents, with a sync engine.

>>> from notebook_sync import Notebook, Session

Files are the truth, databases are mirrors, the prompt is a view.
"""

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session

__version__ = "0.1.0"

__all__ = ["Notebook", "NotebookError", "Session", "__version__"]
