"""What limits a run and what changes its rate: hypotheses with their evidence."""
