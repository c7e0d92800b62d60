#!/usr/bin/env bash
# Looks at the exercises and the slides of the course in a browser: every wrong answer gets a hint,
# the right one is right, the keys turn the slides, and nothing scrolls sideways at 1280 and 400 px.
#
# tests/page/lectures.sh COURSE_TOOL
source "$(dirname "$0")/browser.sh"

for step in 8 9 10 11; do "$tool" exercise "$step" >"$scratch/exercise_$step.html"; done
for lecture in 1 2; do "$tool" slides "$lecture" >"$scratch/lecture_$lecture.html"; done

for page in exercise_{8,9,10,11} lecture_{1,2}; do
    { echo '<script>'; cat "$here/lectures.js"; echo '</script>'; } >>"$scratch/$page.html"
done
# In frames: a window of the browser has a least width. The browser writes what it shows once
# everything has loaded, and one load is faster than twelve.
{
    cat <<'HTML'
<!doctype html><body><script>
const hold = document.body.appendChild(document.createElement("iframe"));
hold.contentDocument.open();
let left = 12;
addEventListener("message", ({ data, source }) => {
  const frame = [...document.querySelectorAll("iframe[src]")].find((it) => it.contentWindow === source);
  const report = document.createElement("pre");
  report.textContent = data.replace("REPORT", `REPORT ${frame.getAttribute("src")} ${frame.style.width}`);
  document.body.append(report);
  if (--left === 0) hold.contentDocument.close();
});
</script>
HTML
    for width in 1280 400; do
        for page in exercise_{8,9,10,11} lecture_{1,2}; do
            echo "<iframe src=\"$page.html\" style=\"width:${width}px;height:760px;border:0\"></iframe>"
        done
    done
} >"$scratch/frames.html"
load "$scratch/frames.html" --window-size=1400,800
reports=$(sed 's/<[^>]*>/\n/g' "$scratch/dom" | grep -E '^(REPORT|not so|ok)')
[ "$(grep -c '^ok' <<<"$reports")" = 12 ] && ! grep -q '^not so' <<<"$reports" || {
    echo "$reports"
    exit 1
}
echo "lectures: ok, $(grep '^ok' <<<"$reports" | awk '{n += $2; s += $4} END {print n / 2, "questions,", s / 2, "slides"}')"
