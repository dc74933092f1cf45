"""Extensions: objectives, batch systems and other parts that installed packages add by entry points."""
