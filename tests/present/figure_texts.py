"""Texts of a drawn figure that reach beyond its edge."""

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
