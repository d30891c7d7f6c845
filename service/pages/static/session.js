// Finds the path of this browser's session, and keeps it out of addresses that are shown or copied.
// Cookies reach every port of a host; this storage belongs to one.

{
  const KEY = "rung-session";
  const PATH = /^\/s\/[\w-]{22}(?=\/)/;
  const { act, path, to } = document.currentScript.dataset;
  const here = PATH.exec(location.pathname)?.[0] ?? "";
  const plain = location.pathname.slice(here.length) + location.search + location.hash;
  const stored = remembered();

  if (act === "begin") {
    remember(path);
    location.replace(path + to);
  } else if (act === "end") {
    if (stored === here) remember("");
    location.replace(to);
  } else if (act === "seek" && stored && stored !== here) {
    location.replace(stored + plain);
  } else {
    if (act === "seek" && stored) remember("");
    if (here) history.replaceState(history.state, "", plain);
    document.addEventListener("DOMContentLoaded", () => {
      if (here) hide();
      else if (act === "replace" && stored) end(document.querySelector("form"));
    });
  }

  function remembered() {
    try {
      const found = localStorage.getItem(KEY) ?? "";
      return PATH.test(`${found}/`) ? found : "";
    } catch {
      return ""; // the browser stores nothing: each plain address asks again
    }
  }

  function remember(value) {
    try {
      if (value) localStorage.setItem(KEY, value);
      else localStorage.removeItem(KEY);
    } catch {
      // As above.
    }
  }

  /** Gives links their plain addresses, and follows them below the path. */
  function hide() {
    for (const link of document.querySelectorAll(`a[href^="${here}/"]`)) {
      const address = link.getAttribute("href").slice(here.length);
      link.href = address;
      link.addEventListener("click", (event) => {
        if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        location.assign(here + address);
      });
    }
    document.addEventListener("copy", () => {
      for (const form of document.querySelectorAll(`form[action^="${here}/"]`)) {
        const action = form.getAttribute("action");
        form.setAttribute("action", action.slice(here.length));
        setTimeout(() => form.setAttribute("action", action)); // after the copy
      }
      for (const image of document.querySelectorAll(`img[src^="${here}/"]`)) {
        const address = image.getAttribute("src");
        image.removeAttribute("src");
        setTimeout(() => image.setAttribute("src", address));
      }
    });
  }

  /** A new sign-in ends the session before it: its form is sent below the old path. */
  function end(form) {
    form.action = stored + form.getAttribute("action");
  }
}
