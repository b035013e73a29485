"""What is measured: ingest, fits, residuals."""
