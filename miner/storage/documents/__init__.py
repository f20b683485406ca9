"""Raw documents to sentences: pages, articles, books; archives and dumps of them."""
