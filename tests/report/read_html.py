"""What a reader of the page sees: its tables, by the section they are in."""

from html.parser import HTMLParser


class Tables(HTMLParser):
    """Rows of (text, small print, mark), by the id of the heading above; folded ones apart."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.folded = {}, {}
        self._section, self._depth, self._cell, self._small = "", 0, None, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "h2":
            self._section = attrs.get("id", "")
        elif tag == "details":
            self._depth += 1
        elif tag == "table":
            self._tables().append([])
        elif tag == "tr":
            self._tables()[-1].append([])
        elif tag in ("td", "th"):
            self._cell = ["", "", attrs.get("class", "")]
        elif tag == "small":
            self._small = True

    def handle_endtag(self, tag):
        if tag == "details":
            self._depth -= 1
        elif tag in ("td", "th"):
            self._tables()[-1][-1].append(tuple(self._cell))
            self._cell = None
        elif tag == "small":
            self._small = False

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[1 if self._small else 0] += data

    def _tables(self):
        return (self.folded if self._depth else self.sections).setdefault(self._section, [])
