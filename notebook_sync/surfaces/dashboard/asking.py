"""What every page has before it begins: the notebook, and that it is the owner who asks. And what a form says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.http.asking import Asking, Served

__all__ = ["Asking", "Form", "Served", "pages_router"]

_MOST_FIELDS: Final = 200


def _owner(request: Request, notebook: Served, asking: Asking) -> None:
    if asking.kind != "owner":  # the door lets in nobody else; a second door might
        notebook.refuse(asking, f"{request.method} {request.url.path}", "The dashboard is the owner's")


def pages_router() -> APIRouter:
    """For pages: of the owner, and not in the document of the API."""
    return APIRouter(include_in_schema=False, dependencies=[Depends(_owner)], default_response_class=HTMLResponse)


async def _form(request: Request) -> Mapping[str, str]:
    """The fields of a form, the last of each name. Line ends are as files have them: browsers send others."""
    try:
        fields = parse_qsl(
            (await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise UsageError("that form cannot be read; go back to the page, and send it again") from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}


Form = Annotated[Mapping[str, str], Depends(_form)]
