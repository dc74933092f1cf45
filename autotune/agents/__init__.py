"""Agents: language models and their programs use studies through the Model Context Protocol."""
