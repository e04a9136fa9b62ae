"""Python interface: campaigns opened for reading, run, compared, and shown in notebooks."""
