"""What encoders are measured by, a module for each task."""
