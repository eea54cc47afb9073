"""The nodes of a Redis Cluster, each asked for the keys it has, and none longer than the timeout.

redis-py's own cluster client is not used: it tries every command of a pipeline that broke once more by itself, and asks
each node before it gives up, which takes minutes with a node that hangs.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import redis
from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as BrokenConnection

Place = tuple[str, int]
# How often commands are sent on before the cluster counts as down: a slot moves once, and a node fails once.
_ROUNDS = 3


class Command(NamedTuple):
    """One call of a client's method, about one key."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What says which node it is for; a script comes before the number of its keys and its key, and a command that
        no method is for before what it is about."""
        return str(self.arguments[{"eval": 2, "execute_command": 1}.get(self.name, 0)])


class Cluster:
    """The nodes behind one address. May be used from several threads."""

    def __init__(self, open_node: Callable[[Place], redis.Redis], first: Place) -> None:
        self._open_node = open_node
        self._lock = threading.Lock()
        self._nodes: dict[Place, Any] = {}
        self._places = [first]
        self._slots: dict[int, Place] = {}

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """The answers, in the order of the commands. Sent node by node; one that was sent on may come after the others.

        Raises the driver's errors, that of a command the server refused among them.
        """
        answers: dict[int, Any] = {}
        left = dict(enumerate(commands))
        trouble: RedisError | None = None
        for _ in range(_ROUNDS):
            by_place = defaultdict(list)
            for number, command in left.items():
                by_place[self._place_of(command.key)].append(number)
            for place, numbers in by_place.items():
                for number, answer in zip(numbers, self._send(place, [left[n] for n in numbers]), strict=True):
                    if isinstance(answer, AskError) and not isinstance(answer, MovedError):
                        answer = self._send((answer.host, answer.port), [left[number]], is_sent_on=True)[0]
                    if isinstance(answer, BrokenConnection | MovedError | TryAgainError | ClusterDownError):
                        trouble = answer
                    elif isinstance(answer, Exception):
                        raise answer
                    else:
                        answers[number] = answer
                        del left[number]
            if not left:
                return [answers[number] for number in range(len(commands))]
            self._slots = {}
        raise trouble or RedisError("the cluster sends commands from node to node")

    def close(self) -> None:
        """Let the connections go. Twice is allowed."""
        with self._lock:
            nodes, self._nodes = self._nodes, {}
        for node in nodes.values():
            node.close()

    def _send(self, place: Place, commands: Sequence[Command], *, is_sent_on: bool = False) -> list[Any]:
        """What one node answers to each command; of a node that is gone, that it is."""
        try:
            with self._node(place).pipeline(transaction=False) as pipeline:
                if is_sent_on:
                    pipeline.execute_command("ASKING")
                for command in commands:
                    getattr(pipeline, command.name)(*command.arguments, **command.options)
                answers: list[Any] = pipeline.execute(raise_on_error=False)
                return answers[-len(commands) :]
        except BrokenConnection as error:
            return [error] * len(commands)
        except redis.TimeoutError:
            self._slots = {}  # by the next request another node may have its place
            raise

    def _place_of(self, key: str) -> Place:
        slots = self._slots or self._look_around()
        slot = key_slot(key.encode(errors="surrogatepass"))
        if slot not in slots:
            raise ClusterDownError("no node has the slot of a key")
        return slots[slot]

    def _look_around(self) -> dict[int, Place]:
        """Ask one node after the other who has which slots. One that hangs is the last to be asked the next time."""
        with self._lock:
            places = list(self._places)
        trouble: RedisError = BrokenConnection("no node of the cluster is there")
        for place in places:
            with self._lock:
                self._places.remove(place)
                self._places.append(place)
            try:
                told = self._node(place).execute_command("CLUSTER SLOTS")
            except BrokenConnection as error:
                trouble = error
                continue
            slots: dict[int, Place] = {}
            for first, last, (host, port, *_), *_ in told:
                slots |= dict.fromkeys(range(first, last + 1), (host or place[0], port))
            with self._lock:
                self._places = list(dict.fromkeys([*self._places, *slots.values()]))
            self._slots = slots
            return slots
        raise trouble

    def _node(self, place: Place) -> Any:
        with self._lock:
            if place not in self._nodes:
                self._nodes[place] = self._open_node(place)
            return self._nodes[place]


class ClusterClient:
    """Stands where a client does: a method is a command, sent to the node that has its key."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **options: self._cluster.run([Command(name, arguments, options)])[0]

    def close(self) -> None:
        """Let the connections go. Twice is allowed."""
        self._cluster.close()

    def pipeline(self, *, transaction: bool) -> ClusterPipeline:
        """Commands that are sent together, those of each node. There is no transaction over nodes."""
        if transaction:
            raise ValueError("a cluster has no transaction over several nodes")
        return ClusterPipeline(self._cluster)


class ClusterPipeline:
    """Stands where a pipeline does."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._commands: list[Command] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: self._commands.append(Command(name, arguments, options))

    def __enter__(self) -> ClusterPipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self._commands = []

    def execute(self) -> list[Any]:
        """Send what was collected; the answers in its order."""
        commands, self._commands = self._commands, []
        return self._cluster.run(commands)
