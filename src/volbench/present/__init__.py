"""What people see: tables, progress, figures, the report."""
