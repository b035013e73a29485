"""An answer as one HTML page that needs no network."""

from .build import page as page
