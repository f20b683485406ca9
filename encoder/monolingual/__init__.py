"""An encoder from text of one language: word vectors, their files, and a bag that has them."""
