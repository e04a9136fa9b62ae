"""Analysis of frames: verdicts, findings, comparisons, prices."""
