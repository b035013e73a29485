"""Names and values of the training frameworks."""
