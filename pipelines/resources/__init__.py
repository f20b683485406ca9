"""The memory, time and disk that a run needs, and how it is made to fit."""
