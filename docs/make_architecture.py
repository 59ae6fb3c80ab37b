"""Writes docs/architecture.svg, the block diagram of the accelerator: `python docs/make_architecture.py`.

Plain SVG on a light panel of its own, so that it reads the same on a light and on a dark page. The same text every time.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

OUT = Path(__file__).parent / "architecture.svg"
WIDTH, HEIGHT = 1016, 588
TITLE = "Block diagram of the nearmac accelerator"
DESCRIPTION = (
    "External memory is on the left. The request unit asks it for bursts; the load unit takes read data to the weight banks (one a "
    "row), the input banks (one a lane), the parameter banks and the program RAM. Weight and input banks feed the MAC array of rows "
    "by cols by lanes. Captured results leave through the drains: bias or partial sum is added, then the output stage and the "
    "assembler follow. The output banks (one a lane) are read by the store unit, which writes external memory. The sequencer, made "
    "of program RAM, evaluator and fields, controls request, load, store and issue unit; the issue unit gives bank addresses and "
    "array control.")

INK, MUTED, PANEL, FRAME = "#1f2328", "#57606a", "#f6f8fa", "#d0d7de"
DATA, CONTROL = "#0b57a4", "#8a4600"
MEMORY_FILL, BANK_FILL, LOGIC_FILL, CONTROL_FILL = "#e7ecf0", "#dcebfa", "#ffffff", "#fdeedd"
GLYPH_SHARE = 0.56  # widest average glyph of the usual sans-serif fonts, as a share of the font size
MARGIN = 6

Point = tuple[int, int]


class Label:
    """A centred text that must fit a width."""

    def __init__(self, x: int, y: int, text: str, size: int, room: int, *, bold: bool = False, colour: str = INK) -> None:
        self.x, self.y, self.text, self.size, self.room, self.bold, self.colour = x, y, text, size, room, bold, colour

    @property
    def fits(self) -> bool:
        return len(self.text) * self.size * GLYPH_SHARE <= self.room

    def svg(self) -> str:
        weight = ' font-weight="600"' if self.bold else ""
        return (f'<text x="{self.x}" y="{self.y}" font-size="{self.size}" fill="{self.colour}" text-anchor="middle"{weight}>'
                f"{escape(self.text)}</text>")


class Drawing:
    """Shapes and labels in the order in which they are painted."""

    def __init__(self) -> None:
        self.shapes: list[str] = []
        self.labels: list[Label] = []

    def box(self, x: int, y: int, width: int, height: int, fill: str, title: str, *lines: str, dashed: bool = False) -> None:
        """A box with a title and smaller lines, the block of them centred."""
        self._rectangle(x, y, width, height, fill, dashed)
        top = y + height // 2 - (18 + 15 * len(lines)) // 2 + 13
        self._text(x, width, top, title, lines)

    def group(self, x: int, y: int, width: int, height: int, title: str) -> None:
        """A dashed frame with its title at the top."""
        self._rectangle(x, y, width, height, "none", True)
        self._text(x, width, y + 18, title, ())

    def _rectangle(self, x: int, y: int, width: int, height: int, fill: str, dashed: bool) -> None:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="{MUTED}"{dash}/>')

    def _text(self, x: int, width: int, top: int, title: str, lines: tuple[str, ...]) -> None:
        room = width - 2 * MARGIN
        self.labels.append(Label(x + width // 2, top, title, 14, room, bold=True))
        for number, line in enumerate(lines):
            if line:
                self.labels.append(Label(x + width // 2, top + 16 + 15 * number, line, 12, room, colour=MUTED))

    def arrow(self, *points: Point, control: bool = False, both: bool = False) -> None:
        """A line with a head at its end: data (blue, solid) or control (brown, dashed)."""
        colour, kind = (CONTROL, "control") if control else (DATA, "data")
        dash = ' stroke-dasharray="5 3"' if control else ""
        heads = f' marker-end="url(#{kind})"' + (f' marker-start="url(#{kind})"' if both else "")
        path = " ".join(f"{x},{y}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}{heads}/>')

    def note(self, x: int, y: int, text: str, room: int, *, control: bool = False) -> None:
        self.labels.append(Label(x, y, text, 12, room, colour=CONTROL if control else DATA))


def draw() -> Drawing:
    d = Drawing()
    d.box(24, 70, 116, 370, MEMORY_FILL, "Memory", "external", "", "program", "parameters", "weights", "input", "output")
    d.box(200, 70, 150, 64, CONTROL_FILL, "Request unit", "bursts of a phase")
    d.box(200, 190, 150, 80, LOGIC_FILL, "Load unit", "beats to entries,", "rows to lanes")
    d.box(200, 356, 150, 80, LOGIC_FILL, "Store unit", "entries to beats")
    d.box(410, 70, 160, 80, BANK_FILL, "Weight banks", "one a row,", "word = cols weights")
    d.box(410, 190, 160, 80, BANK_FILL, "Input banks", "one a lane, word =", "cols activations")
    d.box(410, 356, 160, 80, BANK_FILL, "Output banks", "one a lane,", "entry = a beat")
    d.box(630, 70, 150, 84, LOGIC_FILL, "MAC array", "rows x cols x lanes,", "a vector a cycle")
    d.box(630, 178, 150, 44, LOGIC_FILL, "Capture", "one a row and lane")
    d.box(630, 312, 150, 52, CONTROL_FILL, "Issue unit", "pixels, taps, words")
    d.group(820, 62, 172, 378, "Drains")
    d.box(836, 92, 132, 52, BANK_FILL, "Psum RAM", "channel tiles")
    d.box(836, 178, 132, 44, LOGIC_FILL, "Add", "bias or psum")
    d.box(836, 258, 132, 48, BANK_FILL, "Parameters", "of a channel")
    d.box(836, 330, 132, 44, LOGIC_FILL, "Output stage", "to activations")
    d.box(836, 390, 132, 40, LOGIC_FILL, "Assembler", "words, beats")
    d.group(310, 464, 510, 100, "Sequencer")
    d.box(330, 496, 120, 52, BANK_FILL, "Program", "RAM, 512 words")
    d.box(490, 496, 120, 52, CONTROL_FILL, "Evaluator", "tile after tile")
    d.box(650, 496, 150, 52, CONTROL_FILL, "Fields", "load compute store")
    _data(d)
    _control(d)
    d.arrow((846, 500), (886, 500))
    d.note(936, 504, "data", 60)
    d.arrow((846, 530), (886, 530), control=True)
    d.note(936, 534, "control", 60, control=True)
    return d


def _data(d: Drawing) -> None:
    d.arrow((140, 230), (200, 230))
    d.note(170, 222, "read", 56)
    d.arrow((200, 396), (140, 396))
    d.note(170, 388, "write", 56)
    d.arrow((350, 230), (410, 230))  # load to the banks, the parameters and the program
    d.arrow((390, 230), (390, 110), (410, 110))
    d.arrow((390, 230), (390, 496))
    d.arrow((390, 288), (836, 288))
    d.arrow((570, 100), (630, 100))
    d.arrow((570, 212), (612, 212), (612, 140), (630, 140))
    d.arrow((705, 154), (705, 178))
    d.arrow((780, 200), (836, 200))
    d.arrow((902, 144), (902, 178), both=True)
    d.arrow((902, 258), (902, 222))
    d.arrow((902, 306), (902, 330))
    d.arrow((968, 200), (980, 200), (980, 352), (968, 352))
    d.arrow((902, 374), (902, 390))
    d.arrow((836, 410), (570, 410))
    d.arrow((410, 396), (350, 396))
    d.arrow((450, 522), (490, 522))
    d.arrow((610, 522), (650, 522))


def _control(d: Drawing) -> None:
    d.arrow((200, 102), (140, 102), control=True)
    d.note(170, 94, "request", 58, control=True)
    d.arrow((690, 496), (690, 450), (372, 450), (372, 102), (350, 102), control=True)  # fields to the memory's units
    d.arrow((372, 210), (350, 210), control=True)
    d.arrow((372, 376), (350, 376), control=True)
    d.arrow((730, 496), (730, 364), control=True)
    d.arrow((730, 450), (906, 450), (906, 440), control=True)
    d.arrow((630, 338), (592, 338), (592, 128), (570, 128), control=True)
    d.arrow((592, 250), (570, 250), control=True)
    d.arrow((660, 312), (660, 234), (800, 234), (800, 112), (780, 112), control=True)


def svg() -> str:
    drawing = draw()
    crowded = [label.text for label in drawing.labels if not label.fits]
    if crowded:
        raise ValueError(f"labels that do not fit: {crowded}")
    markers = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>' for name, colour in (("data", DATA), ("control", CONTROL)))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
        ' aria-labelledby="title desc" font-family="Helvetica, Arial, sans-serif">',
        f'<title id="title">{escape(TITLE)}</title>', f'<desc id="desc">{escape(DESCRIPTION)}</desc>', f"<defs>{markers}</defs>",
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" fill="{PANEL}" stroke="{FRAME}"/>',
        f'<text x="24" y="38" font-size="17" font-weight="600" fill="{INK}">Accelerator: one phase stores a tile, loads another, '
        "and computes the one between them</text>",
        *drawing.shapes, *(label.svg() for label in drawing.labels), "</svg>", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    OUT.write_text(svg(), encoding="utf-8")
