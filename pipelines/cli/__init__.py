"""Command lines of mining, embedding, training and documents."""
