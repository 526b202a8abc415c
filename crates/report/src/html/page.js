"use strict";
// A crosshair that all charts share; without it the page loses nothing but exact figures.
(() => {
  const plots = [...document.querySelectorAll(".plot")].map((node) => ({ node, data: JSON.parse(node.dataset.points) }));
  const hide = () => document.querySelectorAll(".cross,.tip").forEach((node) => node.remove());
  const show = (plot, event) => {
    hide();
    const box = plot.node.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const times = plot.data.t;
    const second = times[0] + share * (times[times.length - 1] - times[0]);
    for (const { node, data } of plots) {
      if (data.x !== plot.data.x) continue;
      const span = Math.max(1, data.t[data.t.length - 1] - data.t[0]);
      let index = 0;
      data.t.forEach((t, i) => { if (Math.abs(t - second) < Math.abs(data.t[index] - second)) index = i; });
      const left = (data.t[index] - data.t[0]) / span * 100;
      const cross = document.createElement("div");
      cross.className = "cross";
      cross.style.left = left + "%";
      node.append(cross);
      if (node !== plot.node) continue;
      const tip = document.createElement("div");
      tip.className = "tip";
      const head = document.createElement("div");
      head.textContent = data.t[index] + " " + (data.x || "s");
      tip.append(head);
      for (const line of data.lines) {
        const row = document.createElement("div");
        row.className = "key c" + line.colour;
        row.textContent = line.name + " " + (line.v[index] === null ? "–" : line.v[index] + " " + data.unit);
        tip.append(row);
      }
      tip.style[left < 50 ? "left" : "right"] = "calc(" + (left < 50 ? left : 100 - left) + "% + .6rem)";
      node.append(tip);
    }
  };
  for (const plot of plots) {
    plot.node.addEventListener("pointermove", (event) => show(plot, event));
    plot.node.addEventListener("pointerdown", (event) => show(plot, event));
    plot.node.addEventListener("pointerleave", hide);
  }
})();
