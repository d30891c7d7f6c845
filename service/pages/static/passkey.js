// The forms that a passkey can prove, and the form that adds one. They are sent with the answers of the device.

if (window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
  document.getElementById("without")?.remove();
  for (const form of document.querySelectorAll("form[data-create]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      answer(form);
    });
  }
  for (const button of document.querySelectorAll("button.passkey")) {
    button.hidden = false;
    button.addEventListener("click", () => answer(button.form, button.form.dataset.get));
  }
}

async function answer(form, get) {
  const { create } = form.dataset;
  try {
    if (get) {
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(get));
      form.elements.assertion.value = JSON.stringify(await navigator.credentials.get({ publicKey }));
    }
    if (create) {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(create));
      form.elements.credential.value = JSON.stringify(await navigator.credentials.create({ publicKey }));
    }
    form.submit();
  } catch (error) {
    form.querySelector("[role=status]").textContent = error.name === "InvalidStateError"
      ? "This device already has a passkey for this server."
      : "No passkey was used. Try again, or use a code.";
  }
}
