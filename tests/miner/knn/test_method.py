"""What ``--index`` asks for."""

import pytest

from miner.knn.method import (
    EXACT_SIMILARITIES,
    PROBES,
    CellSpec,
    Exact,
    IndexSpec,
    auto_method,
    parse_method,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exact", Exact()),
        ("cells", CellSpec()),
        ("cells1", CellSpec(count=1, probes=PROBES)),
        ("cells4096", CellSpec(count=4096)),
        ("cells:probes=3", CellSpec(probes=3)),
        ("cells4096:probes=8", CellSpec(count=4096, probes=8)),
        ("cells10:probes=10000", CellSpec(count=10, probes=10000)),
        ("Flat", IndexSpec(factory="Flat")),
        ("IVF4,Flat:nprobe=3", IndexSpec(factory="IVF4,Flat", search="nprobe=3")),
        ("Cells", IndexSpec(factory="Cells")),  # which FAISS refuses
    ],
)
def test_methods_and_their_names(text, expected):
    method = parse_method(text)
    assert method == expected
    assert str(method) == text


def test_what_decides_the_index_and_what_the_search():
    spec = parse_method("IVF64_HNSW8,Flat:nprobe=3,quantizer_efConstruction=80")
    assert isinstance(spec, IndexSpec)
    assert spec.factory == "IVF64_HNSW8,Flat"
    assert (spec.build, spec.search) == ("quantizer_efConstruction=80", "nprobe=3")


@pytest.mark.parametrize(
    "text",
    [
        *("cells0", "cells-4", "cells04", "cells 4", "cells4 ", "cells4\n", "cells1.5", "cellsIVF"),
        *("cells:", "cells4:", "cells4:probes", "cells4:probes=", "cells4:probes=0", "cells4:8"),
        *("cells4:nprobe=8", "cells4:probes=8,", "cells4:probes=8:probes=8", "cells,Flat"),
        *("cells9999999999", "cells4:probes=100000"),
    ],
)
def test_what_is_no_cell_join_though_it_is_called_so(text):
    with pytest.raises(ValueError, match="is malformed; write cells, cells4096") as error:
        parse_method(text)
    assert repr(text) in str(error.value)


def test_auto_is_exact_while_that_takes_minutes():
    side = int(EXACT_SIMILARITIES**0.5)
    assert auto_method(side, side) == Exact()
    assert auto_method(side + 1, side + 1) == CellSpec()
