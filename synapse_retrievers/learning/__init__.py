"""The write path, pure: what is stored and what was used -> what shall be stored."""
