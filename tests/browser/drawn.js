// Draw every chart of a page, and return what each panel holds; symlog axes in their own values.
async () => {
  await drawEverything();
  const isX = (name) => name.startsWith("x") || name === "left" || name === "right";
  const axis = (own) => ({
    label: own.axis_label?.text ?? "",
    ticks: own.formatter.doFormat([1, 2500]),
    places: own.ticker.ticks ?? [],
  });
  const columns = (drawing, source) => Object.fromEntries(
    Object.entries(source.data).map(([name, values]) => {
      const along = drawing.panel[isX(name) ? "x" : "y"];
      return [name, [...values].map((value) => (typeof value === "number" && name !== "value" ? valueAt(along, value) : value))];
    }),
  );
  const panel = ([place, { drawing }]) => ({
    place,
    axes: [drawing.figure.below[0], drawing.figure.left[0]].map(axis),
    ends: [drawing.figure.x_range, drawing.figure.y_range].map((range) => [range.start, range.end]),
    renderers: drawing.renderers.map(({ key, mark, renderer }) => ({
      key,
      mark: drawing.panel.marks.indexOf(mark),
      type: renderer.glyph.type,
      hover: mark.table?.size ? hoverColumns(mark).map(([name]) => name) : [],
      data: columns(drawing, renderer.data_source),
    })),
  });
  return [...document.querySelectorAll(".chart")].map((place) =>
    [...charts.find((own) => own.place === place).drawn].sort(([a], [b]) => a - b).map(panel));
}
