// A served page: parts that changed are replaced, and what was done with them stays. `arm` is the
// script of the page, as files have it.
const main = document.querySelector("main"), strip = document.getElementById("part-strip");
const partOf = (id) => document.getElementById("part-" + id);
// What is shown of each part, and what has come and waits.
const shown = new Map(), waiting = new Map();
const draws = (html = "") => /class="(plot|bars-of-time)"/.test(html);

// The script of the page may listen to the document: what it did so before is over.
let armed = new AbortController();
const armCharts = () => {
  armed.abort();
  armed = new AbortController();
  for (const node of [...main.children]) if (!node.classList.contains("part")) node.remove();
  const { signal } = armed;
  arm(new Proxy(document, { get: (of, name) => {
    const listen = (kind, hear) => of.addEventListener(kind, hear, { signal });
    if (name === "addEventListener") return listen;
    return typeof of[name] === "function" ? of[name].bind(of) : of[name];
  } }));
};

// While somebody reads or zooms a chart, or has hidden a line of one, charts stand still.
const HELD = ".plot:hover,.plot:focus,.plot.zoomed,.legend [aria-pressed=false]," +
  ".bars-of-time .aside";
const stopsOf = (part) => [...part.querySelectorAll("a,button,input,summary,[tabindex]")];

const replace = (part, html) => {
  const nameOf = (details) => details.querySelector("summary")?.textContent;
  const all = (selector) => [...part.querySelectorAll(selector)];
  const open = new Map(all("details").map((one) => [nameOf(one), one.open]));
  const scrolled = all(".scroll").map((one) => [one.scrollLeft, one.scrollTop]);
  part.innerHTML = html;
  for (const one of all("details")) one.open = open.get(nameOf(one)) ?? one.open;
  all(".scroll").forEach((one, at) => {
    [one.scrollLeft, one.scrollTop] = scrolled[at] ?? [0, 0];
  });
};

const update = (isLast = false) => {
  const isHeld = !isLast && main.querySelector(HELD) !== null;
  const drawn = ([id, html]) => draws(html) || draws(shown.get(id));
  const ready = [...waiting].filter((part) => !(isHeld && drawn(part)));
  const redraws = ready.some(drawn);
  const ids = new Set(ready.map(([id]) => id));
  for (const [id, html] of ready) {
    shown.set(id, html);
    waiting.delete(id);
  }
  // The script takes all charts as they were sent.
  if (redraws) for (const [id, html] of shown) if (draws(html)) ids.add(id);
  const focused = document.activeElement, part = focused?.closest("div.part");
  const stop = part ? stopsOf(part).indexOf(focused) : -1;
  for (const id of ids) replace(partOf(id), shown.get(id));
  if (redraws) armCharts();
  // Buttons of legends are there again.
  if (part && !focused.isConnected) stopsOf(part)[stop]?.focus({ preventScroll: true });
};

// What waited for somebody to leave a chart comes then, also if nothing else does.
const leave = () => { if (waiting.size) setTimeout(update); };
for (const kind of ["pointerout", "focusout", "keyup", "click", "dblclick"]) {
  document.addEventListener(kind, leave);
}

const take = (event) => {
  for (const [id, html] of JSON.parse(event.data)) {
    // Another page than this one: it began, or another version of throng serves it.
    if (!partOf(id)) return location.reload();
    if (shown.get(id) === html) waiting.delete(id); else waiting.set(id, html);
  }
  update();
};

const lost = (text) => {
  const line = document.createElement("p");
  Object.assign(line, { className: "lost", textContent: text });
  strip.replaceChildren(line);
  shown.delete("strip");
};

// Nobody looks at a hidden page; it gets all parts when it is seen again.
let events, later, isOver = false;
const connect = () => {
  events?.close();
  clearTimeout(later);
  if (document.hidden || isOver) return;
  events = new EventSource("events");
  events.addEventListener("parts", take);
  events.addEventListener("end", () => {
    isOver = true;
    events.close();
    document.getElementById("controls").hidden = true;
    update(true);
    lost(controls.dataset.over);
  });
  events.addEventListener("error", () => {
    lost("Nothing comes at the moment; it is asked again.");
    // The browser does so, but not after a refusal.
    if (events.readyState === EventSource.CLOSED) later = setTimeout(connect, 5000);
  });
};
document.addEventListener("visibilitychange", connect);

// Only who has the token, which the address had when it was opened, ends the run and marks it.
const ask = (path) => fetch(path, { method: "POST", headers: { "Throng-Token": token } })
  .then(async (answer) => {
    const text = await answer.text();
    // The token is of an earlier command at this address.
    if (answer.status === 403) {
      sessionStorage.removeItem("token");
      controls.hidden = true;
      lost(text);
    }
    return text;
  })
  .catch(() => "not sent")
  .then((text) => { controls.querySelector("output").textContent = text; });
const controls = document.getElementById("controls");
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem("token");
controls.hidden = !token || !controls.dataset.ask;
controls.addEventListener("submit", (event) => {
  event.preventDefault();
  ask("mark?text=" + encodeURIComponent(controls.elements.text.value));
  controls.elements.text.value = "";
});
document.getElementById("stop").addEventListener("click", () => {
  if (confirm(controls.dataset.ask)) ask("stop");
});

for (const part of document.querySelectorAll("div.part")) {
  shown.set(part.id.replace("part-", ""), part.innerHTML);
}
armCharts();
connect();
