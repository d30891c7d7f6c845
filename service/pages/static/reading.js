// Times in the zone of the reader, and keys: / to search, j and k through results, n and p through
// matches.

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

const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
const format = new Intl.DateTimeFormat("en-GB", {
  ...{ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" },
  ...{ hourCycle: "h23", timeZoneName: "short" },
});
const note = document.getElementById("zone");

for (const element of zone ? document.querySelectorAll("time") : []) {
  const at = new Date(element.dateTime);
  // Days have no time of day, and a time without an offset is in a zone that nobody knows.
  if (!element.textContent.includes(":") || !/(z|[+-]\d\d:?\d\d)$/i.test(element.dateTime) || isNaN(at)) continue;
  element.title = element.textContent;
  element.textContent = format.format(at);
}
if (note && zone) note.textContent = `Times are in your time zone, ${zone}. If a record's time has no zone, it is shown unchanged.`;
