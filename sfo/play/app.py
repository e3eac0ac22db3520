"""The web application: a thin layer of HTTP around `Service`.

Starlette belongs to the extra [play], so it is imported where it is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfo.play.cases import Case
from sfo.play.guard import Guard
from sfo.play.service import Answer, Service, UnknownModel, pack
from sfo.play.workers import Busy, Workers

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
BODY_BYTES = 4 * 2**20
"""Largest body that is read."""
DISCARDED_BYTES = 2**26
"""Bytes after which a client that keeps sending is cut off."""
BODY_SECONDS = 10.0
"""Seconds that a client may take to send the body."""
NO_STORE = {"cache-control": "no-store"}


class ClientDisconnected(Exception):
    """The client has closed the connection."""


class BodyRefused(Exception):
    """A body that is too large or too slow to be read.

    Args:
        status: Status of the answer.
        sentence: What is wrong with it.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Playground:
    """The handlers. Predictions and solutions have workers of their own, so that neither waits
    for the other.

    Args:
        service: What answers.
        waiting: How many jobs may wait for each kind of worker.
    """

    def __init__(self, service: Service, waiting: int = 128) -> None:
        self.service = service
        self.operators, self.solvers = Workers(1, waiting), Workers(1, waiting)

    def routes(self) -> list[Any]:
        """Every address."""
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles

        model = "/api/models/{name}"
        return [
            Route("/", self.page, methods=["GET"]),
            Route("/api/models", self.list, methods=["GET"]),
            Route(model, self.about, methods=["GET"]),
            Route(f"{model}/kernel", self.kernel, methods=["GET"]),
            Route(f"{model}/state", self.state, methods=["GET"]),
            Route(f"{model}/predict", self.predict, methods=["GET", "POST"]),
            Route(f"{model}/solve", self.solve, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    async def page(self, request: Request) -> Response:
        from starlette.responses import FileResponse

        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    async def list(self, request: Request) -> Response:
        return json_response(self.service.overview())

    async def about(self, request: Request) -> Response:
        name = request.path_params["name"]
        about = await self._while_connected(request, self.solvers, self.service.about, name)
        return json_response(about)

    async def kernel(self, request: Request) -> Response:
        name = request.path_params["name"]
        return binary_response(
            await self._while_connected(request, self.operators, self.service.kernel, name)
        )

    async def state(self, request: Request) -> Response:
        name, case, _ = await self._asked(request)
        quick = self.service.is_quick(name, case)
        workers = self.operators if quick else self.solvers
        return binary_response(
            await self._while_connected(request, workers, self.service.state, name, case)
        )

    async def predict(self, request: Request) -> Response:
        name, case, grid = await self._asked(request)
        if not self.service.is_quick(name, case):
            await self._while_connected(request, self.solvers, self.service.state, name, case)
        job = (self.service.predict, name, case, grid)
        return binary_response(await self._while_connected(request, self.operators, *job))

    async def solve(self, request: Request) -> Response:
        name, case, grid = await self._asked(request)
        job = (self.service.solve, name, case, grid)
        return binary_response(await self._while_connected(request, self.solvers, *job))

    async def _asked(self, request: Request) -> tuple[str, Case, int | None]:
        """The model, the state and the grid of a request."""
        name = request.path_params["name"]
        body = await read_body(request) if request.method == "POST" else None
        grid, seed = whole_number(request, "grid"), whole_number(request, "seed") or 0
        if not self.service.is_loaded(name):
            await self._while_connected(request, self.operators, self.service.parts, name)
        if body is None:
            return name, self.service.numbered(name, seed), grid
        return name, self.service.drawn(name, body), grid

    async def _while_connected(
        self, request: Request, workers: Workers, job: Callable[..., Any], *arguments: Any
    ) -> Any:
        """The result of a job, unless the client disconnects before it has begun."""
        work = asyncio.ensure_future(workers.run(job, *arguments))
        leaving = asyncio.ensure_future(_disconnection(request))
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientDisconnected
            return work.result()
        finally:
            work.cancel()
            leaving.cancel()
            await asyncio.gather(work, leaving, return_exceptions=True)


async def _disconnection(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def binary_response(answer: Answer) -> Response:
    """An answer as bytes."""
    from starlette.responses import Response

    kind = "application/octet-stream"
    return Response(pack(answer), media_type=kind, headers=NO_STORE)


def whole_number(request: Request, key: str) -> int | None:
    """A number in the address, or None where it is left out."""
    text = request.query_params.get(key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(
            f"`{key}` must be a whole number from 0 on of at most nine digits, got {text[:40]!r}."
        )
    return int(text)


async def read_body(request: Request) -> bytes:
    """The body, if it is not too large and does not take too long.

    One that is too large is read on for a while and thrown away: most clients look at an answer
    only when they have sent everything.
    """

    async def read() -> bytes:
        body, size = bytearray(), 0
        async for part in request.stream():
            size += len(part)
            if size <= BODY_BYTES:
                body += part
            else:
                body.clear()
            if size > DISCARDED_BYTES:
                break
        if size > BODY_BYTES:
            raise BodyRefused(413, f"The body must be at most {BODY_BYTES:,} bytes.")
        return bytes(body)

    try:
        return await asyncio.wait_for(read(), BODY_SECONDS)
    except asyncio.TimeoutError:
        raise BodyRefused(408, f"The body did not come within {BODY_SECONDS:.0f} s.") from None


def json_response(values: Any, status: int = 200, **headers: str) -> Response:
    """Plain values as JSON."""
    from starlette.responses import JSONResponse

    return JSONResponse(values, status, {**NO_STORE, **headers})


def error_response(status: int, sentence: str, **headers: str) -> Response:
    """An error in one sentence."""
    return json_response({"error": sentence}, status, **headers)


async def on_http(request: Request, error: Any) -> Response:
    words = {404: "There is nothing at this address.", 405: "This address takes no such method."}
    return error_response(error.status_code, words.get(error.status_code, str(error.detail)))


async def on_refused(request: Request, error: Any) -> Response:
    # What is left of the body is not read either.
    return error_response(error.status, str(error), connection="close")


async def on_value_error(request: Request, error: Any) -> Response:
    return error_response(
        404 if isinstance(error, UnknownModel) else 422, " ".join(str(error).split())
    )


async def on_busy(request: Request, error: Any) -> Response:
    return error_response(503, "The server is busy; try again in a moment.", **{"retry-after": "1"})


async def on_failure(request: Request, error: Any) -> Response:
    return error_response(500, "The server failed at this request; its terminal says why.")


async def on_disconnect(request: Request, error: Any) -> Response:
    return error_response(499, "The client has closed the connection.")


def build_app(service: Service, host: str = "127.0.0.1", waiting: int = 128) -> Guard:
    """The application for a server that listens on `host`."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    playground = Playground(service, waiting)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        playground.operators.close()
        playground.solvers.close()

    handlers: dict[Any, Any] = {
        HTTPException: on_http,
        BodyRefused: on_refused,
        ValueError: on_value_error,
        Busy: on_busy,
        ClientDisconnected: on_disconnect,
        ClientDisconnect: on_disconnect,
        Exception: on_failure,
    }
    app = Starlette(routes=playground.routes(), exception_handlers=handlers, lifespan=lifespan)
    return Guard(app, host)
