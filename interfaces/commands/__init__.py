"""What each command does, one file each; nothing is imported before it runs."""
