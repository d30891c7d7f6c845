"""The browser pages: server-rendered, without a build step or third-party assets."""
