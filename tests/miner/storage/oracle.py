"""The slow and obvious reading of plain lines that the fast one is compared with."""


def read_lines(data: bytes) -> list[tuple[str, str | None]]:
    """Text and reason for rejection of each line of a file of these bytes."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [_read_line(line) for line in lines]


def _read_line(line: bytes) -> tuple[str, str | None]:
    if len(line) > 2**20:
        return "", "too long"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "", "undecodable"
    if text.endswith("\r"):
        text = text[:-1]
    if len(text) > 10_000:
        return text, "too long"
    if "\0" in text:
        return text, "NUL"
    if text.strip() == "":
        return text, "blank"
    return text, None
