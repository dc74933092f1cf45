"""The service: how quickly it answers, how much it bears, and its page with large studies."""
