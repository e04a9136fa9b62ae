"""Texts of a drawn figure that reach beyond its edge, or over each other."""

from itertools import combinations

from matplotlib.figure import Figure


def texts_outside(figure: Figure) -> list[str]:
    """Return the texts that reach beyond the figure."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # of FigureCanvasAgg
    width, height = figure.bbox.size
    found = []
    for axes in figure.axes:
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        for text in [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label, *ticks]:
            box = text.get_window_extent(renderer)
            outside = box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1
            if text.get_text() and text.get_visible() and outside and text not in ticks:
                found.append(text.get_text())
        found += [
            label.get_text()
            for label in axes.get_yticklabels()
            if label.get_window_extent(renderer).x0 < -1
        ]
    return found


def texts_touching(figure: Figure) -> list[str]:
    """Return the pairs of texts inside and beside the panels that cover each other."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        texts = [text for text in [*axes.texts, axes.title] if text.get_text()]
        boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
        for (text, box), (other, next_to) in combinations(boxes, 2):
            wide = min(box.x1, next_to.x1) - max(box.x0, next_to.x0)
            high = min(box.y1, next_to.y1) - max(box.y0, next_to.y0)
            if wide > 1 and high > 2:  # letters without descenders end above their box
                found.append(f"{text!r} and {other!r}")
    return found
