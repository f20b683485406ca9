#!/usr/bin/env bash
# Runs the kernels' tests and mines the sample on an emulated 64-bit Arm CPU. Measures no speed.
#
#     bash benchmarks/arm64.sh FOLDER
#
# FOLDER keeps Debian's arm64 packages and the wheels (0.9 GB) for the next call. Needs qemu-aarch64-static
# (Debian: qemu-user-static), apt-get, dpkg-deb, and Python 3.11 to 3.13 with pip. Changes nothing outside FOLDER.
set -euo pipefail

folder=$(realpath -m "$1")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
root=$folder/root apt=$folder/apt wheels=$folder/wheels

if [ ! -e "$folder/debian" ]; then
    mkdir -p "$root" "$apt"/{state/lists/partial,cache/archives/partial}
    touch "$apt/status"
    options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$apt/state"
        -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Install-Recommends=false
        -o APT::Sandbox::User=root -o Debug::NoLocking=1)
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install --download-only --yes python3 libstdc++6
    for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    touch "$folder/debian"
fi
python=$(basename "$(readlink "$root/usr/bin/python3")")

mapfile -t packages < <(python3 -c '
import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"], "pytest", "hypothesis", sep="\n")
' "$here/pyproject.toml")
if [ "$(cat "$folder/installed" 2>/dev/null)" != "${packages[*]}" ]; then
    platforms=(--platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64)
    python3 -m pip install --quiet --upgrade --target "$wheels" --only-binary :all: "${platforms[@]}" \
        --python-version "${python#python}" "${packages[@]}"
    echo "${packages[*]}" >"$folder/installed"
fi

cd "$here"
emulated() {
    qemu-aarch64-static -cpu max -L "$root" -E "PYTHONPATH=$wheels:$here" -E "NUMBA_CACHE_DIR=$folder/numba" \
        "$root/usr/bin/$python" "$@"
}
emulated -c 'import platform; from miner.instructions import CHOSEN; print(platform.machine(), CHOSEN and CHOSEN.name)'
# Tests of sets start processes, which only an emulated kernel could. Those of 8 bits take ten minutes.
emulated -m pytest -q -p no:cacheprovider -m "not slow" -k "not of_sets and not 8_bits" \
    tests/miner/knn/core/test_{int8,compiled,rescore,tuning}.py
sample=eval/assets/sample/de-en/de-en.training
emulated -c 'from pipelines.cli.main import adit; raise SystemExit(adit())' \
    mine "$sample.de" "$sample.en" -o "$folder/pairs.tsv"
sha256sum "$folder/pairs.tsv"
