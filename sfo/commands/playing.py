"""`sfo play`: the playground."""

from importlib.util import find_spec
from typing import Annotated

import tyro

from sfo.checks import install_command


def play(
    models: Annotated[list[str], tyro.conf.Positional] = [],  # noqa: B006
    data: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    browser: bool = True,
) -> None:
    """Draw an initial state on a local page, and see solver, operator and error side by side.

    Needs the extra [play]. For example:
    $ sfo play
    $ sfo play runs/demo runs/mine --port 8080 --no-browser
    $ sfo play runs/mine --data mine.npz

    Args:
        models: Pretrained models by name, folders of runs, and folders that hold runs; all
            pretrained models if left out.
        data: File with the data of the runs on arrays of your own, if they were trained on
            arrays in memory or their file has moved.
        host: Address to listen on; only this machine reaches the default.
        port: Port to listen on; 0 takes any that is free.
        browser: Open the page in a browser.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ValueError(f"`sfo play` needs {' and '.join(missing)}: {install_command('play')}.")
    from sfo.play.server import serve
    from sfo.play.service import Service
    from sfo.play.shown import find_models

    serve(Service(find_models(models, data)), host, port, browser=browser)
