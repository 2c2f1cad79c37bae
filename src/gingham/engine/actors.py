"""Parts of a fit that live on the workers of a dask cluster and change in place, one dask actor each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from gingham.engine.dask_worker import Client
from gingham.engine.threads import one_thread

Step = tuple[str, tuple[object, ...]]  # a method and its arguments
Message = Any  # its result: numbers and arrays


class LostError(Exception):
    """A worker was lost with the parts that it held."""


class Actor:
    """``make(*arguments)`` on a worker; its methods run one after the other, on a thread of their own."""

    def __init__(self, make: Callable[..., object], *arguments: object) -> None:
        self.own = make(*arguments)

    async def run(self, steps: Sequence[Step]) -> tuple[Message, Exception | None]:
        """The result of the last of some steps; the actors of a worker run side by side."""
        return await asyncio.to_thread(self.run_here, steps)

    def run_here(self, steps: Sequence[Step]) -> tuple[Message, Exception | None]:
        """An error of a method is a result: what is raised is a connection that broke."""
        result = None
        try:
            with one_thread():
                for name, arguments in steps:
                    result = getattr(self.own, name)(*arguments)
        except Exception as error:
            return None, error
        return result, None


class Later(Protocol):
    def result(self) -> tuple[Message, Exception | None]: ...


class Proxy(Protocol):
    """An actor as its client sees it."""

    def run(self, steps: Sequence[Step]) -> Later: ...


def start_actors(client: Client, make: Callable[..., object], parts: Sequence[object]) -> list[Proxy]:
    """An actor ``make(part)`` for every part, where the part is."""
    try:
        made = [client.submit(Actor, make, part, actor=True, pure=False) for part in parts]
        return [cast("Proxy", future.result()) for future in made]
    except OSError:
        raise LostError from None


class Actors:
    """The parts of a fit in their order. Steps without results wait until the next result is asked for."""

    def __init__(self, proxies: Sequence[Proxy]) -> None:
        self.proxies = proxies
        self.waiting: list[list[Step]] = [[] for _ in proxies]

    def __len__(self) -> int:
        return len(self.proxies)

    def later(self, name: str, *arguments: object) -> None:
        """The same step for all parts, before the next one that has a result."""
        for steps in self.waiting:
            steps.append((name, arguments))

    def each(self, name: str, *arguments: object, beside: Sequence[tuple[object, ...]] | None = None) -> list[Message]:
        """The result of a step for every part; ``beside`` are arguments of each that come first."""
        own = [()] * len(self) if beside is None else beside
        return self._results([(at, name, (*mine, *arguments)) for at, mine in enumerate(own)])

    def one(self, at: int, name: str, *arguments: object) -> Message:
        """The result of a step of one part."""
        return self._results([(at, name, arguments)])[0]

    def _results(self, asked: Sequence[tuple[int, str, tuple[object, ...]]]) -> list[Message]:
        try:
            running = []
            for at, name, arguments in asked:
                running.append(self.proxies[at].run([*self.waiting[at], (name, arguments)]))
                self.waiting[at] = []
            results = [one.result() for one in running]
        except (OSError, ValueError) as broken:  # ValueError: dask has been told already that the worker is gone
            raise LostError(str(broken)) from None
        for _, error in results:
            if error is not None:
                raise error
        return [result for result, _ in results]
