const rows = [...document.querySelectorAll("tbody tr")];
const filter = document.getElementById("filter");
const apply = () => {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
};
filter.addEventListener("input", apply);
apply();
