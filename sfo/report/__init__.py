"""Pictures, tables and pages made from Records and runs."""
