"""Words of messages."""


def counted(count: int, unit: str) -> str:
    """Format a count and a plural in -s or -ies, as "1 entry", "1,200 days"."""
    if count == 1:
        unit = f"{unit[:-3]}y" if unit.endswith("ies") else unit.removesuffix("s")
    return f"{count:,} {unit}"
