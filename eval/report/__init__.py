"""The report of a finished run: one page of HTML, its sections, tables and charts."""
