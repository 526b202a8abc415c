// Pointer, keys and legend. The page itself has no button: without this script it would do nothing.
const help = make("p", "", "Arrow keys read the values, with Shift ten points at a time; Home and "
  + "End go to the ends. Plus and minus show less and more of the axis, Escape all of it.");
Object.assign(help, { id: "chart-keys", hidden: true });
document.querySelector("main").append(help);

const listenToPointer = (plot) => {
  const { node, pick } = plot;
  let held;
  const at = (event) => {
    const box = node.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return plot.from + share * (plot.until - plot.from);
  };
  const picked = (event) => [held.at, at(event)].sort((a, b) => a - b);
  const drop = () => { pick.remove(); held = undefined; };
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    held = { at: at(event), x: event.clientX };
    node.setPointerCapture(event.pointerId);
    show(plot, held.at);
  });
  node.addEventListener("pointermove", (event) => {
    show(plot, at(event));
    if (!held) return;
    const [from, until] = picked(event);
    place(pick, plot, from);
    pick.style.setProperty("--w", (until - from) / plot.whole);
    plot.layer.append(pick);
  });
  node.addEventListener("pointerup", (event) => {
    // A hand is not still: a click is no stretch.
    if (held && Math.abs(event.clientX - held.x) > 5) zoom(plot, ...picked(event));
    drop();
  });
  node.addEventListener("pointercancel", drop);
  node.addEventListener("pointerleave", hide);
  node.addEventListener("dblclick", reset);
};

const listenToKeys = (plot) => {
  const { node, t } = plot, last = t.length - 1;
  const inFrame = (index) => {
    const at = t[Math.min(last, Math.max(0, index))];
    return Math.min(plot.until, Math.max(plot.from, at));
  };
  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const by = event.shiftKey ? 10 : 1, { index } = plot;
    const to = { ArrowLeft: index - by, ArrowRight: index + by, Home: 0, End: last }[event.key];
    const times = { "+": 0.5, "-": 2 }[event.key];
    if (to !== undefined) {
      show(plot, inFrame(to));
      say(plot);
    } else if (times !== undefined) {
      const middle = inFrame(index), half = (plot.until - plot.from) / 2 * times;
      zoom(plot, middle - half, middle + half);
    } else return;
    event.preventDefault();
  });
  node.addEventListener("focus", () => {
    if (node.matches(":focus-visible")) show(plot, inFrame(plot.index));
  });
  node.addEventListener("blur", hide);
};

const listenToLegend = (plot) => {
  const legend = plot.node.parentNode.querySelector(".legend");
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "Lines of " + plot.title);
  [...legend.children].forEach((key, index) => {
    const button = make("button", key.className, key.textContent), line = plot.lines[index];
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      line.isHidden = !line.isHidden;
      line.drawn.classList.toggle("off", line.isHidden);
      button.setAttribute("aria-pressed", String(!line.isHidden));
    });
    key.replaceWith(button);
  });
};

for (const plot of plots) {
  plot.node.classList.add("live");
  const says = { tabindex: 0, role: "application", "aria-roledescription": "chart",
    "aria-label": plot.title, "aria-describedby": help.id };
  for (const [name, text] of Object.entries(says)) plot.node.setAttribute(name, text);
  listenToPointer(plot);
  listenToKeys(plot);
  listenToLegend(plot);
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") reset(); });
