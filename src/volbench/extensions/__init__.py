"""Extensions: capabilities that the core works without, each in a folder of its own."""
