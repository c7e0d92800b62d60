//! The word that a user most likely meant.

/// Returns the name that differs from a word in two letters at most, or in one if it is short. Of
/// names that are as near, the first.
pub fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let letters = word.chars().count();
    let most = if letters < 4 { 1 } else { 2 };
    let near = names.filter(|name| name.chars().count().abs_diff(letters) <= most);
    let near = near.map(|name| (distance(word, name), name));
    let near = near.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns how many letters must be changed, added or removed, or exchanged with the next letter,
/// to make one word the other. `rows[i][j]` is the distance of the first `i` letters of `a` and the
/// first `j` letters of `b`.
fn distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|word| word.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
            };
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[a.len()][b.len()]
}
