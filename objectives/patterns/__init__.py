"""Users' regular expressions over output, each in bounded time."""
