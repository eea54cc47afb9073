"""What can be done with a notebook, each operation declared once: Python, command line, HTTP, MCP and tools follow."""

from notebook_sync.operations.admin import AdminService
from notebook_sync.operations.channels import ChannelService
from notebook_sync.operations.context import ContextService
from notebook_sync.operations.facts import FactService
from notebook_sync.operations.memories import MemoryService
from notebook_sync.operations.prompts import PromptService
from notebook_sync.operations.registry import OPERATIONS
from notebook_sync.operations.stream import StreamService

SERVICES = (
    PromptService,
    AdminService,
    FactService,
    MemoryService,
    ContextService,
    StreamService,
    ChannelService,
)

__all__ = ["OPERATIONS", "SERVICES"]
