"""Suite of the house rules: what holds for every module, page and script."""
