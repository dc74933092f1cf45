"""The service: studies over HTTP, and the page. Nothing outside of it, but the command `serve`, needs FastAPI."""
