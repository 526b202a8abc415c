// What a watch page does: its data, an advertiser, a beacon, then the player.
async function begin() {
  const feed = await (await fetch("feed.json")).json();
  document.title = feed.title;
  const elsewhere = document.createElement("script");
  elsewhere.src = "http://localhost:18498/ads.js";
  document.head.append(elsewhere);
  await fetch("beat", { method: "POST", body: "seen" }).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 100));
  document.getElementById("player").src = "film.mp4";
}
begin();
