"""Map one space of vectors to another one by an orthogonal matrix."""
