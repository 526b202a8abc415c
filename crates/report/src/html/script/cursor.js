// The values at a point: beside the cursor for the pointer, in words for screen readers.
const tip = make("div", "tip"), said = make("output", "unseen");
tip.setAttribute("aria-hidden", "true");
document.querySelector("main").append(said);

const shown = (plot) => plot.lines.filter((line) => !line.isHidden);
const moment = (plot) => plot.t[plot.index] + " " + plot.axis;
const value = (plot, line) => {
  const v = line.v[plot.index];
  return line.name + " " + (v == null ? "–" : (v + " " + plot.unit).trim());
};

const hide = () => {
  tip.remove();
  for (const plot of plots) plot.cross.remove();
};

const show = (plot, at) => {
  for (const other of alike(plot)) {
    other.index = nearest(other.t, at);
    place(other.cross, other, other.t[other.index]);
    other.layer.append(other.cross);
  }
  const share = (plot.t[plot.index] - plot.from) / (plot.until - plot.from) * 100;
  // On the side that has more room.
  const side = share < 50 ? "left" : "right";
  const beyond = Math.max(0, Math.min(share, 100 - share));
  tip.style.left = tip.style.right = "";
  tip.style[side] = `calc(${beyond}% + .6rem)`;
  tip.style.maxWidth = `calc(${100 - beyond}% - .6rem)`;
  const rows = shown(plot).map((line) => make("div", "key c" + line.colour, value(plot, line)));
  tip.replaceChildren(make("div", "", moment(plot)), ...rows);
  plot.node.append(tip);
};

const say = (plot) => {
  const values = shown(plot).map((line) => value(plot, line)).join("; ");
  said.textContent = `${plot.title}, ${moment(plot)}: ${values}`;
};
