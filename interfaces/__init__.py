"""Who asks: command line, files, verification."""
