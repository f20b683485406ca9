"""LASER's encoders, which run without LASER, fairseq or Perl."""
