"""What a run needs in memory, time and disk, and how it is made to fit."""
