// Starts Swagger UI on the document of this server. Nothing is asked of any other server.
"use strict";

(() => {
  const place = document.getElementById("viewer");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  follow();
  dark.addEventListener("change", follow);

  window.SwaggerUIBundle({
    domNode: place,
    url: place.dataset.document,
    presets: [window.SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    persistAuthorization: false,
    validatorUrl: null,
    // The viewer's own label of this list names nothing.
    onComplete: () => document.getElementById("servers")?.setAttribute("aria-label", "Server"),
  });
})();
