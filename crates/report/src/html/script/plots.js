// What charts can do besides being looked at: those over the same axis share a cursor and the
// stretch of it that is shown, and each line can be hidden. Without it the page loses nothing but
// exact figures.
const make = (tag, className, textContent = "") =>
  Object.assign(document.createElement(tag), { className, textContent });

const plots = [...document.querySelectorAll(".plot")].map((node) => {
  const data = JSON.parse(node.dataset.points), svg = node.querySelector("svg");
  const drawn = [...svg.querySelectorAll(".line, .area")];
  // A stack is drawn from the bottom up; its legend and its values begin at the top.
  if (svg.querySelector(".area")) drawn.reverse();
  const first = data.t[0], whole = Math.max(1, data.t[data.t.length - 1] - first);
  return {
    node, svg, first, whole,
    // The stretch that is shown, and the point at the cursor.
    from: first, until: first + whole, index: 0,
    t: data.t, axis: data.x ?? "s", unit: data.unit,
    lines: data.lines.map((line, index) => ({ ...line, drawn: drawn[index], isHidden: false })),
    title: svg.querySelector("title").textContent,
    labels: [...node.querySelectorAll(".x")],
    layer: node.appendChild(make("div", "under")),
    cross: make("i", "cross"), pick: make("i", "pick"),
  };
});

const alike = (plot) => plots.filter((other) => other.axis === plot.axis);

// The style stretches places, which are shares of the whole axis, with what is shown of it.
const place = (node, plot, at) => node.style.setProperty("--x", (at - plot.first) / plot.whole);

// The point next to a place on the axis; points are in order.
const nearest = (t, at) => {
  let low = 0, high = t.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (t[middle] <= at) low = middle; else high = middle;
  }
  return at - t[low] <= t[high] - at ? low : high;
};
