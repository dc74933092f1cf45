"""SQLite files: access, and journals that suit the file system."""
