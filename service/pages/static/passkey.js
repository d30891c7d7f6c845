// The forms that add a passkey and sign in with one. They are sent with the answer of the device.

const form = document.querySelector("form[data-create], form[data-get]");
if (window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
  form.hidden = false;
  document.getElementById("without")?.remove();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask().then(send, refused);
  });
}

function ask() {
  const { create, get } = form.dataset;
  if (get) {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(get));
    return navigator.credentials.get({ publicKey });
  }
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(create));
  return navigator.credentials.create({ publicKey });
}

function send(credential) {
  form.elements.credential.value = JSON.stringify(credential);
  form.submit();
}

function refused(error) {
  const text = error.name === "InvalidStateError"
    ? "This device already has a passkey for this server."
    : "No passkey was used. Try again, or use a code.";
  form.querySelector("[role=status]").textContent = text;
}
