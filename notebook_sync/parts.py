"""Parts of a notebook: each is made when it is first used, once, whichever thread asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Made = TypeVar("_Made")


class part(Generic[_Made]):  # noqa: N801 - stands where `property` would
    """A property that is made once. Each has a lock of its own: a store that is slow to open holds up no other part.

    A part may ask for others, which must not ask for it.
    """

    def __init__(self, make: Callable[[Any], _Made]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, wiring: None, _: type) -> part[_Made]: ...
    @overload
    def __get__(self, wiring: Any, _: type) -> _Made: ...
    def __get__(self, wiring: Any, _: type) -> part[_Made] | _Made:
        if wiring is None:
            return self
        with wiring._making.setdefault(self._name, threading.Lock()):
            made: dict[str, Any] = vars(wiring)  # looked up before this is: once made, it costs an attribute
            if self._name not in made:
                made[self._name] = self._make(wiring)
            found: _Made = made[self._name]
            return found
