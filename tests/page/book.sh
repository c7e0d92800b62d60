#!/usr/bin/env bash
# Looks at the book in headless Chromium, light and dark: see `book.js`. No error in the console.
#
# tests/page/book.sh FOLDER
set -- none "$@"
source "$(dirname "$0")/browser.sh"

folder=$(realpath "$1")
{
    echo '<!doctype html><body><iframe style="width:1280px;height:900px;border:0"></iframe><script>'
    echo "const folder = 'file://$folder/', pages = ["
    find "$folder" -name '*.html' ! -name toc.html | sort | sed "s|.*|'file://&',|"
    echo '];'
    cat "$here/book.js"
    echo '</script>'
} >"$scratch/book.html"

# Looks with the scheme $1, which has the number $2 in Chromium.
look() {
    scratch=$scratch/$1
    mkdir "$scratch"
    load "$scratch/../book.html" --allow-file-access-from-files --window-size=1400,1000 \
        --blink-settings=preferredColorScheme="$2"
    said BOOK >"$scratch/report"
    cat "$scratch/report"
    [ "$(wc -l <"$scratch/report")" = 1 ]
}
# Side by side: each takes the time of one core.
look dark 0 &
dark=$!
look light 1 &
light=$!
status=0
for each in "$dark" "$light"; do
    wait "$each" || status=1
done
exit $status
