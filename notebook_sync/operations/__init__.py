"""What can be done with a notebook, each operation declared once: Python, command line, HTTP, MCP and tools follow."""

from notebook_sync.operations.context import ContextService
from notebook_sync.operations.facts import FactService
from notebook_sync.operations.memories import MemoryService
from notebook_sync.operations.prompts import PromptService
from notebook_sync.operations.registry import OPERATIONS

SERVICES = (PromptService, FactService, MemoryService, ContextService)

__all__ = ["OPERATIONS", "SERVICES"]
