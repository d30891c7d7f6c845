// The clipboard, also on pages that came over plain HTTP, where browsers keep the newer way back.

/** Whether a text went into the clipboard. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return byHand(text);
  }
}

function byHand(text) {
  const focused = document.activeElement;
  const holder = document.createElement("textarea");
  holder.value = text;
  holder.className = "unseen";
  document.body.append(holder);
  holder.select();
  const done = document.execCommand("copy");
  holder.remove();
  focused?.focus();
  return done;
}
