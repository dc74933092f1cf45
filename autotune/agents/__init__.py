"""Agents: language models and their programs use studies by the Model Context Protocol."""
