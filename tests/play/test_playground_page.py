"""The page in headless Chromium: drawing, sliders, choices, the numbers, and both widths."""

import re
import shutil
from threading import Event

import numpy as np
import pytest
import torch
from matplotlib import colormaps

import sfo
from sfo.evaluation.errors import ErrorSums
from sfo.evaluation.metrics import per_time, relative_l2
from sfo.play.app import STATIC
from sfo.play.cases import Case
from sfo.play.service import Answer
from sfo.play.shown import ListedModel, LoadedModel, find_models
from sfo.play.sources import NoSource
from sfo.training.prepare import DataShape

CHROMIUM = shutil.which("chromium")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, see [dev]")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page at an address's end; what goes wrong in it fails the test."""
    problems, pages = [], []

    def start(end="", width=1400, height=900, refused="", **how):
        page = browser.new_page(viewport=dict(width=width, height=height), **how)
        pages.append(page)
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda m: (
                problems.append(m.text)
                if m.type == "error" and not (refused and refused in m.text)
                else None
            ),
        )
        page.on("request", lambda r: r.url.startswith(address) or problems.append(r.url))
        page.goto(f"{address}/{end}")
        settled(page)
        return page

    yield start
    for page in pages:
        page.close()
    assert problems == []


def settled(page):
    """Wait until the page has asked for all that it wants."""
    page.wait_for_selector("html[data-busy=false]")


def number(page, name):
    return float(page.get_attribute(f"#{name}", "data-value"))


def slide(page, name, value):
    page.locator(f"#{name}").fill(str(value))
    settled(page)


def on_state(page, x, y):
    """A point of the canvas, in shares of its picture."""
    box = page.locator("#state").bounding_box()
    left, top, below, right = (50, 8, 24, 8) if page.is_hidden("#brush-row") else (42, 0, 56, 0)
    width, height = box["width"] - left - right, box["height"] - top - below
    return box["x"] + left + x * width, box["y"] + top + (1 - y) * height


def drag(page, points):
    page.locator("#state").scroll_into_view_if_needed()
    page.mouse.move(*on_state(page, *points[0]))
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*on_state(page, *point), steps=6)
    page.mouse.up()
    page.wait_for_timeout(50)
    settled(page)


def expected_error(service, name, case, grid):
    """The relative error as the package measures it."""
    truth, guess = (ask(name, case, grid).fields for ask in (service.solve, service.predict))
    shape = service.parts(name).shape
    box = sfo.Grid(tuple(truth.shape[2:]), shape.grid.lower, shape.grid.upper)
    sums = ErrorSums(components=len(shape.names), n_times=len(shape.times), grid=box)
    sums.update(guess.flatten(0, 1)[None], truth.flatten(0, 1)[None])
    return relative_l2(sums), per_time(sums).tolist()


def test_the_numbers_are_the_packages(open_page, service):
    page = open_page("#m=waves&s=3&t=4&g=4")
    whole, by_frame = expected_error(service, "waves", Case(3), 4)
    assert number(page, "error") == pytest.approx(whole, rel=1e-4)
    assert number(page, "error-now") == pytest.approx(by_frame[4], rel=1e-4)
    assert page.inner_text("#error").endswith(" %")
    assert number(page, "solver-ms") > 0
    assert number(page, "operator-ms") > 0
    assert page.inner_text("#truth-words") == "on 256 points"


def test_the_sliders_move_time_and_grid(open_page, service):
    page = open_page("#m=waves&s=1")
    assert page.inner_text("#grid-value") == "64 points, as trained"
    slide(page, "grid", 5)
    assert page.inner_text("#grid-value") == "256 points"
    whole, by_frame = expected_error(service, "waves", Case(1), 5)
    assert number(page, "error") == pytest.approx(whole, rel=1e-4)
    slide(page, "time", 2)
    assert page.inner_text("#time-value") == "t = 0.2"
    assert number(page, "error-now") == pytest.approx(by_frame[2], rel=1e-4)
    assert "t=2" in page.evaluate("location.hash")
    assert "g=5" in page.evaluate("location.hash")


def test_a_drawn_curve_is_solved_and_can_be_shared(open_page):
    """Another state, other numbers; the address alone brings them back, and undo the sample's."""
    page = open_page("#m=waves&s=1")
    before = number(page, "error")
    drag(page, [(0.1, 0.5), (0.35, 0.9), (0.6, 0.2), (0.9, 0.6)])
    drawn = number(page, "error")
    assert drawn != pytest.approx(before, rel=1e-3)
    assert "not from drawings" in page.inner_text("#message")
    again = open_page(page.evaluate("location.hash"))
    assert number(again, "error") == pytest.approx(drawn, rel=1e-5)
    page.click("#undo")
    settled(page)
    assert number(page, "error") == pytest.approx(before, rel=1e-5)


def test_a_click_drops_water(open_page):
    """On the state and on a panel; the depth grows, so the solver's picture changes."""
    page = open_page("#m=water&s=2&t=0", reduced_motion="reduce")
    picture = page.locator("#truth").screenshot()
    before = number(page, "error")
    drag(page, [(0.5, 0.5), (0.5, 0.5)])
    after = number(page, "error")
    assert after != pytest.approx(before, rel=1e-6)
    assert page.locator("#truth").screenshot() != picture
    box = page.locator("#operator").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.3)
    page.wait_for_timeout(50)
    settled(page)
    assert number(page, "error") != pytest.approx(after, rel=1e-6)
    again = open_page(page.evaluate("location.hash"), reduced_motion="reduce")
    assert number(again, "error") == pytest.approx(number(page, "error"), rel=1e-5)


@pytest.mark.slow
def test_the_keyboard_draws(open_page):
    page = open_page("#m=waves&s=1")
    before = number(page, "error")
    page.focus("#state")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowUp", "Shift+ArrowUp"):
        page.keyboard.press(key)
    page.wait_for_timeout(50)
    settled(page)
    assert number(page, "error") != pytest.approx(before, rel=1e-6)
    assert "k=" in page.evaluate("location.hash")


@pytest.mark.slow
def test_a_finger_draws(open_page):
    page = open_page("#m=water&s=2", width=420, has_touch=True, reduced_motion="reduce")
    before = number(page, "error")
    page.locator("#state").scroll_into_view_if_needed()
    page.touchscreen.tap(*on_state(page, 0.3, 0.6))
    page.wait_for_timeout(50)
    settled(page)
    assert number(page, "error") != pytest.approx(before, rel=1e-6)


def test_problems_and_models_change(open_page):
    page = open_page("#m=waves&s=4")
    first = number(page, "error")
    page.select_option("#model", "waves-fno")
    settled(page)
    assert number(page, "error") != pytest.approx(first, rel=1e-6)
    assert page.input_value("#seed") == "4", "the state stays while the problem does"
    page.select_option("#data", "maxwell")
    settled(page)
    assert "cannot be drawn" in page.inner_text("#hint")
    assert page.is_visible("#slice-row")
    page.select_option("#field", "3")
    slide(page, "slice", 2)
    assert page.inner_text("#slice-value") == "3 of 8"
    page.select_option("#data", "mine")
    settled(page)
    assert page.inner_text("#truth-title") == "Truth"
    assert page.inner_text("#solver-ms") == "–"
    drag(page, [(0.2, 0.5), (0.5, 0.9)])
    assert "the nearest one" in page.inner_text("#truth-words")


@pytest.mark.slow
def test_time_plays(open_page):
    page = open_page("#m=water&s=2&t=0")
    page.click("#play")
    page.wait_for_selector("#play[aria-label=Pause]")
    page.wait_for_selector("#play[aria-label=Play]")
    assert page.inner_text("#time-value") == "t = 1"


@pytest.mark.slow
def test_the_kernel_view_shows_the_model_on_screen(open_page):
    page = open_page("#m=water")
    page.click("#kernel summary")
    page.wait_for_selector("#kappa[aria-label*='layer 1']")
    page.select_option("#layer", label="2")
    assert "layer 2" in page.get_attribute("#kappa", "aria-label")
    assert "6 modes of the basis usb" in page.inner_text("#kernel-words")
    page.select_option("#data", "allen_cahn")
    settled(page)
    page.select_option("#model", "waves-fno")
    page.wait_for_selector("#kernel-words:has-text('no kernels')")


@pytest.mark.slow
def test_what_is_wrong_in_an_address_is_left_out(open_page):
    page = open_page("#m=nothing&b=shallow_water&s=99999999&t=77&g=99&k=!!&d=%25")
    assert page.input_value("#model") == "water"
    assert number(page, "error") > 0


@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize("model", [slow("waves"), "water", slow("light")])
def test_no_page_is_wider_than_the_screen(open_page, width, model):
    page = open_page(f"#m={model}", width=width)
    page.click("#kernel summary")
    page.wait_for_selector("#kappa[aria-label*='layer 1']")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        "[...document.querySelectorAll('main *')].filter((e) => e.getClientRects().length && "
        "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.id || e.tagName)"
    )
    assert outside == []


@pytest.mark.slow
def test_light_and_dark(open_page):
    """As the system says, until the button is pressed."""
    shades = {}
    for scheme in ("light", "dark"):
        page = open_page("#m=waves", color_scheme=scheme)
        shades[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shades["light"] != shades["dark"]
    page.click("#theme")
    now = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert now == shades["light"]


def test_everything_that_acts_has_a_name(open_page):
    page = open_page("#m=water")
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select, canvas')].filter((e) => "
        "e.getClientRects().length && !(e.ariaLabel || e.labels?.length || e.innerText?.trim() || "
        "e.getAttribute('aria-labelledby'))).map((e) => e.id)"
    )
    assert nameless == []


@pytest.mark.parametrize(("name", "table"), [("POSITIVE", "viridis"), ("SIGNED", "RdBu_r")])
def test_colours_are_those_of_the_packages_pictures(name, table):
    text = re.search(rf"const {name} = table\((.*?)\);", (STATIC / "colours.js").read_text(), re.S)
    found = bytes.fromhex("".join(re.findall(r'"(\w+)"', text[1])))
    expected = colormaps[table](np.arange(256), bytes=True)[:, :3]
    np.testing.assert_array_equal(np.frombuffer(found, np.uint8).reshape(256, 3), expected)


def test_nothing_is_fetched_from_elsewhere():
    for path in STATIC.iterdir():
        addresses = re.findall(r"https?://[^\s\"'`]+", path.read_text())
        assert [a for a in addresses if "www.w3.org" not in a] == []


def test_an_address_of_a_model_that_is_not_shown_is_answered_in_words(open_page):
    """It showed the first model, with the other one's sample and time, and said nothing."""
    page = open_page("#b=darcy&m=gone&s=7&t=1")
    assert "“gone”" in page.inner_text("#message")
    assert "not shown here" in page.inner_text("#message")
    assert page.input_value("#seed") == "0"
    page.select_option("#data", "shallow_water")
    settled(page)
    assert page.inner_text("#message") == ""


def test_the_model_chosen_last_is_shown_even_if_another_answers_later(open_page):
    page = open_page("#m=waves&s=1")
    late = []
    page.route("**/api/models/water", lambda route: late.append(route))
    page.select_option("#data", "shallow_water")
    page.wait_for_timeout(100)
    page.select_option("#data", "allen_cahn")
    settled(page)
    assert number(page, "error") > 0
    late[0].continue_()
    page.wait_for_timeout(500)
    settled(page)
    assert page.input_value("#data") == "allen_cahn"
    assert "m=waves" in page.evaluate("location.hash")


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory):
    """A steady run on arrays in memory, whose folder does not hold them; and the arrays."""
    place = tmp_path_factory.mktemp("memory")
    a = np.random.default_rng(0).normal(size=(20, 1, 16, 16)).astype("float32")
    settings = dict(hidden_channels=8, n_modes=4, n_layers=1)
    sfo.fit(a, a**2, epochs=1, settings=settings, out=place / "run")
    np.savez(place / "mine.npz", a=a, u=a**2)
    return place / "run", place / "mine.npz"


def test_a_run_without_data_says_so_in_full(open_page, service, in_memory, monkeypatch):
    """No empty panels, no title of an initial state, and the way to a truth, uncut."""
    folder, file = in_memory
    models = {**find_models([str(folder)]), "given": find_models([str(folder)], file)["run"]}
    monkeypatch.setattr(service, "models", {**service.models, **models})
    page = open_page("#m=run")
    assert page.inner_text("#state-title") == "Input: a"
    assert "trained on arrays in memory" in page.inner_text("#message")
    assert f"sfo play {folder} --data mine.npz" in page.inner_text("#message")
    assert page.is_hidden("#truth")
    assert page.is_hidden("#difference")
    assert page.inner_text("#error") == "–"
    page.select_option("#model", "given")
    settled(page)
    assert page.is_visible("#truth")
    assert number(page, "error") > 0
    assert page.inner_text("#message") == ""
    assert open_page("#m=waves").inner_text("#state-title") == "Initial state: u"


@pytest.mark.slow
def test_no_caption_is_cut(open_page):
    """It ended in an ellipsis at 1400 points where a drawn state has a nearest stored sample."""
    page = open_page("#m=mine")
    drag(page, [(0.2, 0.5), (0.5, 0.9)])
    assert page.is_visible("#curve-words:has-text('the nearest one')")
    page = open_page("#m=water&s=2")
    page.evaluate("document.getElementById('truth-words').textContent = 'many words '.repeat(12)")
    cut = page.evaluate(
        "[...document.querySelectorAll('figcaption, p, dd, h2')].filter((e) => "
        "e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)"
    )
    assert cut == []
    tops = [page.locator(f"#{name}").bounding_box()["y"] for name in ("truth", "operator")]
    assert tops[0] == tops[1]


def test_a_solution_that_comes_late_does_not_stand_beside_a_newer_drawing(
    open_page, service, monkeypatch
):
    """The solution of the sample was compared with the prediction for the curve being drawn."""
    solve, free = service.solve, Event()
    solve("waves", Case(2))
    page = open_page("#m=waves&s=1")
    monkeypatch.setattr(service, "solve", lambda *asked: (free.wait(30), solve(*asked))[1])
    page.click("#next")
    page.wait_for_selector("#message:has-text('Solving')")
    page.mouse.move(*on_state(page, 0.2, 0.5))
    page.mouse.down()
    page.mouse.move(*on_state(page, 0.6, 0.9), steps=6)
    free.set()
    page.wait_for_timeout(300)
    assert page.inner_text("#error") == "–"
    assert number(page, "operator-ms") > 0
    page.mouse.up()
    page.wait_for_timeout(50)
    settled(page)
    assert number(page, "error") > 0


def test_a_model_that_cannot_be_read_leaves_the_others_to_choose(open_page, service, monkeypatch):
    """The lists stayed empty where it was the first, and its name stood over another's pictures."""

    def load():
        raise ValueError("Its weights are damaged.")

    broken = ListedModel("broken", "SFO broken", "allen_cahn", "1D Allen–Cahn", load)
    monkeypatch.setattr(service, "models", {"broken": broken, **service.models})
    page = open_page(refused="422")
    words = "SFO broken on 1D Allen–Cahn cannot be shown: Its weights are damaged."
    assert page.inner_text("#message") == words
    for name in ("random", "play", "next"):
        page.click(f"#{name}")
    page.select_option("#model", "waves")
    settled(page)
    assert number(page, "error") > 0
    page.select_option("#model", "broken")
    settled(page)
    assert page.inner_text("#message") == words
    assert page.input_value("#model") == "waves"


def test_an_operator_that_is_slower_is_not_called_faster(open_page, service, monkeypatch):
    predict = service.predict

    def slowly(*asked):
        answer = predict(*asked)
        return Answer({**answer.meta, "milliseconds": 1e7}, answer.fields)

    monkeypatch.setattr(service, "predict", slowly)
    page = open_page("#m=waves&s=1")
    assert page.inner_text("#ratio-title") == "Operator is slower by"
    assert float(page.inner_text("#ratio").removesuffix(" ×").replace(",", "")) > 1


def test_numbers_are_written_without_an_exponent_and_with_a_minus_sign(open_page):
    """0.0007 % was "7.0e-4 %"."""
    page = open_page("#m=waves")
    written = page.evaluate(
        "import('/static/canvas.js').then((m) => [[0.000701, 20.41, 1234, 0].map(m.plain), "
        "[-0.5, 7.4e-5].map(m.short)])"
    )
    assert written == [["0.000701", "20.4", "1,230", "0"], ["−0.5", "7.4e−5"]]


def test_the_plane_stays_in_the_box_on_a_coarser_grid(open_page, service, monkeypatch):
    """The last plane of 16 becomes the last of 8, not the sixteenth, which is not there."""
    shape = DataShape(1, 1, sfo.Grid((16,) * 3, (0.0,) * 3, (1.0,) * 3), (0.0,), ("u",), ("a",))
    parts = LoadedModel(torch.nn.Identity(), shape, NoSource(shape, "There is no truth."), "Plain.")
    box = ListedModel("box", "Identity", "box", "A box", lambda: parts)
    monkeypatch.setattr(service, "models", {**service.models, "box": box})
    page = open_page("#m=box")
    assert page.inner_text("#grid-value") == "16 × 16 × 16 points, as trained"
    slide(page, "slice", 15)
    slide(page, "grid", 0)
    assert page.inner_text("#slice-value") == "8 of 8"


@pytest.mark.slow
def test_a_finger_scrolls_over_a_picture_and_draws_on_a_curve(open_page):
    """A touch that began on the picture dropped water, also where it went on as a scroll."""
    for model, gesture in (("water", "manipulation"), ("waves", "none")):
        page = open_page(f"#m={model}", width=420)
        assert page.evaluate("getComputedStyle(state).touchAction") == gesture
    assert page.evaluate("getComputedStyle(document.getElementById('time-row')).position") == (
        "sticky"
    )


def test_time_and_pictures_are_on_one_screen(open_page):
    """In 2D the slider lay below the fold, so that nobody saw what it moved."""
    page = open_page("#m=water")
    for name in ("time", "grid", "field", "truth", "operator", "difference"):
        box = page.locator(f"#{name}").bounding_box()
        assert box["y"] + box["height"] <= 900, name


def test_axis_labels_have_room(open_page):
    """8.0e−6 was cut on the left."""
    page = open_page("#m=waves")
    cut = page.evaluate(
        """import('/static/canvas.js').then((m) => [[0, 8e-6], [-1.25e-6, 2]].filter((y) => {
            const canvas = document.getElementById('truth');
            const scale = { low: 0, high: 1, table: new Uint8ClampedArray(768) };
            const frame = { columns: 2, rows: 2, at: () => 0, scale, labels: ['', ''] };
            const box = m.drawField(canvas, { ...frame, x: [0, 1], y });
            const pen = canvas.getContext('2d');
            return y.some((value) => pen.measureText(m.short(value)).width > box.x - 5);
        }))"""
    )
    assert cut == []
    assert page.evaluate("import('/static/canvas.js').then((m) => m.short(8e-6))") == "8e−6"


def test_a_server_that_is_gone_is_said_in_words(open_page):
    """It said "Failed to fetch"."""
    page = open_page("#m=waves&s=1", refused="ERR_FAILED")
    page.route("**/api/**", lambda route: route.abort())
    page.click("#next")
    settled(page)
    assert page.inner_text("#message").startswith("The server does not answer.")
    assert page.is_visible("#message.warn")


def test_while_something_loads_the_page_says_what(open_page, service, monkeypatch):
    """The first prediction, and the first solution, may take seconds: no panel stays blank."""
    page = open_page("#m=waves&s=1")
    predict, free = service.predict, Event()
    monkeypatch.setattr(service, "predict", lambda *asked: (free.wait(30), predict(*asked))[1])
    page.select_option("#data", "shallow_water")
    page.wait_for_selector("#message:has-text('Predicting')")
    spinner = "getComputedStyle(document.getElementById('message'), '::before').animationName"
    assert page.evaluate(spinner) == "turn"
    heights = [page.locator(f"#{name}").bounding_box()["height"] for name in ("truth", "operator")]
    free.set()
    settled(page)
    assert page.evaluate(spinner) == "none"
    assert heights == [
        page.locator(f"#{n}").bounding_box()["height"] for n in ("truth", "operator")
    ]


@pytest.mark.slow
def test_samples_begin_with_number_0(open_page):
    """Before 0 came sample 16,777,215; a number that is too large is the last one."""
    page = open_page("#m=waves&s=0")
    assert page.is_disabled("#previous")
    page.click("#next")
    settled(page)
    page.click("#previous")
    settled(page)
    assert page.input_value("#seed") == "0"
    page.fill("#seed", "99999999")
    page.press("#seed", "Enter")
    settled(page)
    assert page.input_value("#seed") == str(2**24 - 1)
