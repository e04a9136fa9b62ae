"""What is wanted: profiles, jobs, options."""
