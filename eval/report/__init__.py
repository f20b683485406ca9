"""The report of a finished run, a page of HTML with tables and charts."""
