#!/usr/bin/env bash
# Looks at what a timeline says in detail, in headless Chromium: the scopes and the interrupted
# waits that it draws are those of the log; its tree of tasks and its answers to why are the tool's.
#
# tests/page/marks.sh TRACE_TOOL TRACE...
source "$(dirname "$0")/browser.sh"

# What the page should say, from the log alone.
expected() {
    awk '
        /^#/ { next }
        { seq = $3; verb = $6 }
        verb == "trap" && $7 ~ /^(set_timeout|guard|shield|branch)$/ {
            for (n = 8; n <= NF && $n != "="; n++);
            scope = $(n + 1)
            opened[scope] = seq " " ($7 == "set_timeout" ? "timeout " $8 : $7 == "guard" ? "guard " $8 : $7)
            order[++scopes] = scope
            closed[scope] = "open"
        }
        verb == "trap" && $7 ~ /^un(set_timeout|guard|shield|branch)$/ { closed[$8] = seq }
        verb == "deliver" { interrupted++ }
        $4 > 0 { tasks[$4]; mark["run"] = mark["run"] || verb == "run" }
        verb ~ /^(spawn|wake|deliver)$/ { mark["ready"] = 1 }
        verb == "block" { mark["blocked"] = 1 }
        verb == "exit" { mark["ended"] = 1 }
        verb == "drop" && $7 == "its_run_failed" { mark["hang"] = 1 }
        verb == "note" || verb == "enter" { mark[verb == "note" ? "note" : "span"] = 1 }
        verb == "withdraw" { mark["withdrawn"] = 1 }
        verb == "deliver" { mark["interrupted"] = 1 }
        verb ~ /^(arrive|fire)$/ { mark["outside"] = 1 }
        $4 == 0 && verb !~ /^(arrive|fire)$/ { mark["kernel"] = 1 }
        verb == "await" { awaits[$0] }
        verb == "trap" && $7 ~ /^(set_timeout|guard)$/ { mark["scope"] = 1 }
        verb == "trap" && $7 ~ /^(shield|branch)$/ { mark[$7] = 1 }
        verb == "trap" && $7 ~ /^un(set_timeout|guard|shield|branch)$/ {
            rest = $0
            sub(/.* = /, "", rest)
            own = rest !~ / scope=/ || index(rest " ", " scope=" $8 " ")
            if (rest ~ /^!/) mark[rest ~ /^!timeout( |$)/ && own ? "due" : "hit"] = 1
        }
        END {
            print "scopes drawn: " scopes + 0
            print "interrupted drawn: " interrupted + 0
            for (n = 1; n <= scopes; n++) {
                print "scope " opened[order[n]] " " closed[order[n]]
                if (closed[order[n]] == "open") mark["endless"] = 1
            }
            mark["woke"] = length(tasks) > 1
            line = "legend:"
            many = split("run ready blocked interrupted withdrawn ended scope shield branch due hit " \
                "outside kernel woke hang span note", names)
            for (n = 1; n <= many; n++) if (mark[names[n]]) line = line " " names[n]
            print line
        }' "$1"
    lines=$(grep -vc '^#' "$1")
    middle=$(awk -v "nth=$(((lines + 1) / 2))" '!/^#/ && ++n == nth { print $1 }' "$1")
    "$tool" tree --at "$middle" "$1"
    grep -m 20 -E '^ *[0-9.]+ +[0-9]+ +#[0-9]+ +[0-9]+ +[^ ]+ +run ' "$1" |
        sed 's/^[^#]*#\([0-9]*\) .*/\1/' | while read -r seq; do
        echo "why #$seq $("$tool" why "$seq" "$1" | head -n 1)"
    done
}

for trace in "$@"; do
    "$tool" timeline -o "$scratch/page.html" "$trace"
    { echo '<script>'; cat "$here/marks.js"; echo '</script>'; } >>"$scratch/page.html"
    load "$scratch/page.html" --window-size=1280,800 --virtual-time-budget=3000
    said MARKS |
        sed -E '/^legend:/s/ (several|endless|late|many|folded|lock|circle)\b//g' >"$scratch/page"
    expected "$trace" >"$scratch/log_says"
    diff "$scratch/log_says" "$scratch/page" || {
        echo "$trace: the page says something else (>) than the log (<)"
        exit 1
    }
    echo "$(basename "$trace"): ok, $(head -n 2 "$scratch/page" | paste -sd ' ')"
done
