"""Write docs/images/playground.png: the playground in Chromium, with a drawn state of Allen–Cahn.

    python docs/playground_picture.py       # needs [play], playwright and Debian's chromium

The milliseconds on it are those of this machine, so it should have nothing else to do. Of several
tries the one is kept in which the solver took least, which other work can only lengthen.
"""

import base64
import shutil
import threading
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from sfo.play.server import listen, make_server, page_address
from sfo.play.service import ResultCache, Service
from sfo.play.shown import find_models

TARGET = Path(__file__).parent / "images" / "playground.png"
TRIES = 10
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def drawn_curve() -> str:
    """The 64 knots of a curve, as the page's address has them."""
    x = 2 * np.pi * np.arange(64) / 64
    curve = np.sin(2 * x + 0.6) + 0.55 * np.sin(3 * x - 1.1) + 0.25 * np.cos(5 * x)
    heights = 32768 + 14000 * curve / np.abs(curve).max()
    return base64.urlsafe_b64encode(heights.astype("<u2").tobytes()).decode().rstrip("=")


def number(page: Page, name: str) -> float:
    """A number on the page, by its id."""
    return float(page.get_attribute(f"#{name}", "data-value") or "nan")


def main() -> None:
    """Serve, look, and save."""
    listening = listen("127.0.0.1", 0)
    service = Service(find_models([]))
    server = make_server(service, "127.0.0.1")
    thread = threading.Thread(target=server.run, kwargs=dict(sockets=[listening]), daemon=True)
    thread.start()
    address = page_address("127.0.0.1", listening.getsockname()[1])
    with sync_playwright() as driver:
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page(viewport=dict(width=1400, height=900), color_scheme="light")
        page.set_default_timeout(120_000)
        page.goto(f"{address}#b=allen_cahn&m=allen_cahn&s=5&k={drawn_curve()}")
        page.wait_for_selector("html[data-busy=false]")
        tries = []
        for _ in range(TRIES):
            service.cache = ResultCache()  # Or the solution would be the first one, with its time.
            page.reload()
            page.wait_for_selector("html[data-busy=false]")
            tries.append((number(page, "solver-ms"), page.screenshot(full_page=True)))
            print(f"solver {tries[-1][0]:.0f} ms, operator {number(page, 'operator-ms'):.1f} ms")
        TARGET.write_bytes(min(tries)[1])
        browser.close()
    server.should_exit = True
    thread.join(10)
    print(f"{TARGET}: {TARGET.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
