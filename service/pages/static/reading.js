// Keys of the reading pages: / to search, j and k through results, n and p through matches.

const box = document.getElementById("q");
const hits = [...document.querySelectorAll("a.hit")];

function move(by) {
  const place = hits.indexOf(document.activeElement);
  const next = place < 0 ? (by > 0 ? 0 : hits.length - 1) : place + by;
  hits[Math.min(Math.max(next, 0), hits.length - 1)]?.focus();
}

const ACTS = {
  "/": () => (box ? (box.focus(), box.select()) : location.assign("/read")),
  j: () => move(1),
  k: () => move(-1),
  n: () => document.querySelector('a[rel="next"]')?.click(),
  p: () => document.querySelector('a[rel="prev"]')?.click(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(ACTS, event.key)) return;
  event.preventDefault();
  ACTS[event.key]();
});
