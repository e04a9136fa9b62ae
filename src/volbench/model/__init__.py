"""The nouns of volbench: frozen, without input or output of their own."""
