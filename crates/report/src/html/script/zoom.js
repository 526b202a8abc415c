// The stretch of the axis that is shown. Lines keep their points: the view box chooses among them.
const ticks = ({ from, until, axis }) => {
  const rough = (until - from) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough);
  const step = Math.max(1, round ?? rough), labels = [];
  for (let at = Math.ceil(from / step) * step; at <= until; at += step) {
    const label = make("span", "x", at + (labels.length ? "" : " " + axis));
    label.style.left = (at - from) / (until - from) * 100 + "%";
    labels.push(label);
  }
  return labels;
};

const frame = (plot, from, until) => {
  Object.assign(plot, { from, until });
  const x = (from - plot.first) / plot.whole, width = (until - from) / plot.whole;
  const isWhole = x === 0 && width === 1;
  plot.svg.setAttribute("viewBox", `${x * 1000} 0 ${width * 1000} 100`);
  plot.node.style.setProperty("--from", x);
  plot.node.style.setProperty("--span", width);
  plot.node.classList.toggle("zoomed", !isWhole);
  for (const label of plot.node.querySelectorAll(".x")) label.remove();
  plot.node.append(...(isWhole ? plot.labels : ticks(plot)));
};

// From a point to a point, in all charts over the same axis.
const zoom = (plot, ...ends) => {
  const [from, until] = ends.map((at) => plot.t[nearest(plot.t, at)]);
  if (from === until) return;
  hide();
  for (const other of alike(plot)) frame(other, from, until);
  said.textContent = `${from} to ${until} ${plot.axis} are shown; Escape shows all.`;
};

const reset = () => {
  if (!plots.some((plot) => plot.node.classList.contains("zoomed"))) return;
  hide();
  for (const plot of plots) frame(plot, plot.first, plot.first + plot.whole);
  said.textContent = "All is shown.";
};
