"""Report: what campaigns measured as one HTML page that needs no network."""
