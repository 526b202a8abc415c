for (const graph of document.querySelectorAll(".bars-of-time")) {
  const bars = [...graph.querySelectorAll(".bar-of-time")];
  const said = graph.closest("figure").querySelector(".chosen");
  const place = (bar, name) => parseFloat(bar.dataset[name] ??= bar.getAttribute(name));
  const choose = (chosen) => {
    const left = place(chosen, "x"), width = place(chosen, "width"), top = place(chosen, "y");
    for (const bar of bars) {
      const from = Math.max(place(bar, "x"), left), to = Math.min(place(bar, "x") + place(bar, "width"), left + width);
      // Callers of the chosen function stay above it; its siblings are hidden.
      bar.classList.toggle("aside", to - from < 1e-3 && bar !== chosen || (place(bar, "y") === top && bar !== chosen));
      bar.setAttribute("x", (from - left) / width * 100 + "%");
      bar.setAttribute("width", Math.max(to - from, 0) / width * 100 + "%");
    }
    say(chosen);
  };
  const say = (bar) => { said.textContent = bar ? bar.querySelector("title").textContent : ""; };
  for (const bar of bars) bar.setAttribute("role", "button");
  graph.addEventListener("click", (event) => {
    const bar = event.target.closest(".bar-of-time");
    if (bar) choose(bar);
  });
  graph.addEventListener("pointerover", (event) => say(event.target.closest(".bar-of-time")));
  graph.addEventListener("focusin", (event) => say(event.target.closest(".bar-of-time")));
  graph.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return choose(bars[0]);
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(event.target);
  });
}
