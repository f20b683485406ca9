"""LASER's encoders: their files, preprocessing and networks, without LASER, fairseq or Perl."""
