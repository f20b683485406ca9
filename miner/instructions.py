"""Instruction sets that multiply integer codes, and their LLVM code.

Numba cannot call them, so functions here generate LLVM code, which it puts into its loops. Most
instructions need an unsigned factor, so a number that makes the codes of columns positive is added
to these. AMX multiplies tiles: registers of 16 rows with 64 bytes each, which a thread configures
first. The system must grant their use to the process.

AVX2 multiplies bytes, but sums adjacent products in 16 bits, and adding four such sums before they
are widened is fastest. They fit if column codes are at most 79, so 1 to 159 after raising, and row
codes are as ``InstructionSet`` requires for ``limited``. Other codes are int16 there. If
``ADIT_INT8`` is set, but not to ``none`` or a set of this CPU, the import raises ValueError.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
from llvmlite import binding, ir
from numba.core import cgutils

# Names the set to use, or "none". Tests compare the sets by it.
VARIABLE = "ADIT_INT8"
NONE = "none"

HARDWARE_FEATURES = 16  # AT_HWCAP of Linux
# The system call arch_prctl of Linux on x86-64, its request for a register set, and AMX's tiles.
ARCH_PRCTL, REQUEST, TILES = 158, 0x1023, 18
DOTPROD = 1 << 20  # HWCAP_ASIMDDP of Linux on Arm


class Way(NamedTuple):
    """One instruction's way to multiply codes of one type.

    ``multiply`` takes an LLVM builder, a register of sums, and registers of column and row codes,
    and returns the sums plus the products; with tiles, it is None. Sums have 32 bits. If there is
    ``widen``, they are None at first and have 16 bits, and after ``steps`` steps, it takes a
    builder, a register of 32 bits and them, and returns the register plus them. A lane of 32 bits
    has ``codes`` codes. ``raised`` must be added to the codes of columns. If ``by_step``, all
    products of a block take a step before the next one, which needs few registers.
    """

    multiply: Callable[[Any, Any, Any, Any], Any] | None
    widen: Callable[[Any, Any, Any], Any] | None = None
    codes: int = 4
    steps: int = 1
    raised: int = 0
    by_step: bool = False


@dataclass(frozen=True, kw_only=True)
class InstructionSet:
    """A set of instructions, and the size of its blocks of products.

    ``int8`` multiplies codes up to 63, or 127 if ``int16`` is None, which else multiplies these.
    ``limited``, None if ``int8`` is as fast, multiplies codes of a search: column codes up to
    ``largest`` by row codes up to 127. Of each 16 row codes, the positive ones of codes 0, 1, 4, 5,
    8, 9, 12 and 13 sum to at most ``largest_sum``, the negative ones to at least -``largest_sum``,
    and so do the other eight's. A register has ``lanes`` of 32 bits. A block of products has
    ``rows`` rows, and columns in ``vectors`` registers. If ``tiles``, AMX multiplies it. ``name``
    is LLVM's name of the feature, ``processor`` of a CPU without faster ones, "" on Arm.
    """

    name: str
    processor: str
    lanes: int
    rows: int = 6
    vectors: int
    int8: Way
    int16: Way | None = None
    limited: Way | None = None
    largest: int = 127
    largest_sum: int = 8 * 127
    tiles: bool = False


def declared(builder: Any, name: str, returned: Any, *given: Any) -> Any:
    """Declare LLVM's function ``name`` in the module of an llvmlite builder.

    ``returned`` and ``given`` are llvmlite types of result and arguments. Returns the function.
    """
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(returned, given), name)


def in_lanes(builder: Any, number: Any, lanes: int) -> Any:
    """Emit an LLVM vector with ``number``, an LLVM scalar, in all ``lanes``."""
    index = ir.IntType(32)
    one = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    one = builder.insert_element(one, number, index(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(index, lanes), None))


def _call(
    builder: Any, name: str, returned: Any, totals: Sequence[Any], bits: int, codes: Sequence[Any]
) -> Any:
    kind = ir.VectorType(ir.IntType(bits), codes[0].type.count * 32 // bits)
    kinds = [returned] * len(totals) + [kind] * len(codes)
    function = declared(builder, name, returned, *kinds)
    return builder.call(function, [*totals, *(builder.bitcast(each, kind) for each in codes)])


def _vpdpbusd(builder: Any, total: Any, columns: Any, codes: Any) -> Any:
    name = f"llvm.x86.avx512.vpdpbusd.{32 * total.type.count}"
    return _call(builder, name, total.type, [total], 32, [columns, codes])


def _sdot(builder: Any, total: Any, columns: Any, codes: Any) -> Any:
    name = "llvm.aarch64.neon.sdot.v4i32.v16i8"
    return _call(builder, name, total.type, [total], 8, [columns, codes])


def _vpmaddwd(builder: Any, total: Any, columns: Any, codes: Any) -> Any:
    name = "llvm.x86.avx2.pmadd.wd" if total.type.count == 8 else "llvm.x86.avx512.pmaddw.d.512"
    return builder.add(total, _call(builder, name, total.type, [], 16, [columns, codes]))


def _vpmaddubsw(builder: Any, sums: Any, columns: Any, codes: Any) -> Any:
    lanes = columns.type.count
    name = "llvm.x86.avx2.pmadd.ub.sw" if lanes == 8 else "llvm.x86.avx512.pmaddubs.w.512"
    halves = ir.VectorType(ir.IntType(16), 2 * lanes)
    products = _call(builder, name, halves, [], 8, [columns, codes])
    return products if sums is None else builder.add(sums, products)


def _vpmaddubsw_in_order(builder: Any, sums: Any, columns: Any, codes: Any) -> Any:
    # LLVM would choose an order of sums for which AVX2 has too few registers.
    products = _vpmaddubsw(builder, None, columns, codes)
    if sums is None:
        return products
    add = ir.FunctionType(sums.type, [sums.type, sums.type])
    return builder.asm(add, "vpaddw $1, $2, $0", "=x,x,x", [sums, products], side_effect=False)


def _widened(builder: Any, total: Any, sums: Any) -> Any:
    ones = ir.Constant(total.type, [0x00010001] * total.type.count)
    return _vpmaddwd(builder, total, builder.bitcast(sums, total.type), ones)


_VNNI = Way(_vpdpbusd, raised=128)
_AVX: dict[str, Any] = {
    "int8": Way(_vpmaddubsw, _widened, steps=2, raised=80),
    "int16": Way(_vpmaddwd, codes=2),
    "largest": 79,
    "largest_sum": 206,
}
_ALL = (  # the fastest first
    InstructionSet(
        name="amx-int8",
        processor="sapphirerapids",
        lanes=16,
        rows=32,
        vectors=2,
        int8=Way(None, steps=16),
        tiles=True,
    ),
    InstructionSet(name="avx512vnni", processor="cascadelake", lanes=16, vectors=4, int8=_VNNI),
    InstructionSet(name="avxvnni", processor="alderlake", lanes=8, vectors=2, int8=_VNNI),
    InstructionSet(
        name="avx512bw",
        processor="skylake-avx512",
        lanes=16,
        rows=4,
        vectors=2,
        limited=Way(_vpmaddubsw, _widened, steps=4, raised=80),
        **_AVX,
    ),
    InstructionSet(
        name="avx2",
        processor="haswell",
        lanes=8,
        rows=2,
        vectors=3,
        limited=Way(_vpmaddubsw_in_order, _widened, steps=4, raised=80, by_step=True),
        **_AVX,
    ),
    InstructionSet(name="dotprod", processor="", lanes=4, vectors=4, int8=Way(_sdot)),
)
SETS = {each.name: each for each in _ALL}


def _features() -> binding.FeatureMap:
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this CPU
        features = binding.FeatureMap()
    if platform.machine() in ("aarch64", "arm64"):  # LLVM doesn't name all of its features
        features["dotprod"] = sys.platform == "darwin" or _kernel_reports(DOTPROD)
    features["amx-int8"] = features.get("amx-int8", False) and _tiles_are_granted()
    return features


def _tiles_are_granted() -> bool:
    """Request AMX's tiles from Linux, and return whether it grants them."""
    with suppress(OSError, AttributeError):
        request = ctypes.CDLL(None).syscall
        return sys.platform == "linux" and bool(request(ARCH_PRCTL, REQUEST, TILES) == 0)
    return False


def _kernel_reports(feature: int) -> bool:
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).getauxval(HARDWARE_FEATURES) & feature)
    return False


binding.initialize_native_asmparser()  # of _vpmaddubsw_in_order
FEATURES = _features()
# Names of this CPU's sets, the fastest first.
USABLE = [name for name in SETS if FEATURES.get(name)]
ASKED = os.environ.get(VARIABLE, "")


def _chosen() -> InstructionSet | None:
    # ``VARIABLE`` requests a set. Numba caches compiled functions by CPU, so each set has its own.
    if ASKED and ASKED not in (*USABLE, NONE):
        known = ", ".join((*USABLE, NONE))
        raise ValueError(f"{VARIABLE}={ASKED}: not available on this CPU; choose one of {known}")
    other = any(os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"))
    if ASKED == NONE or not USABLE or (other and not ASKED):
        return None
    chosen = SETS[ASKED or USABLE[0]]
    if ASKED and chosen.processor:
        os.environ.update(NUMBA_CPU_NAME=chosen.processor, NUMBA_CPU_FEATURES="")
    elif not chosen.processor:  # Arm, where Numba knows only LLVM's features
        os.environ["NUMBA_CPU_FEATURES"] = FEATURES.flatten()
    numba.config.reload_config()
    return chosen


CHOSEN = _chosen()
