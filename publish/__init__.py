"""What is published: sdist and wheel, `server.json`, the bundle, the skill and the plugin."""
