//! "Did you mean": finds the known word that is most similar to a mistyped one.

/// Returns the most similar known word, if one is similar enough.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let typed: Vec<char> = word.to_lowercase().chars().collect();
    // A word this long is not a typing mistake, and comparing it would be slow.
    if typed.len() > 64 {
        return None;
    }
    let similar = |known: &&'k str| {
        let meant: Vec<char> = known.to_lowercase().chars().collect();
        let begins = typed.len() >= 3 && (meant.starts_with(&typed) || typed.starts_with(&meant));
        let distance = distance(&typed, &meant);
        let allowed = (typed.len().max(meant.len()) / 3).max(1);
        (distance <= allowed || begins).then_some((distance, *known))
    };
    known.iter().filter_map(similar).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Edit distance: the number of insertions, deletions, replacements and swaps of neighbouring characters.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (i, &from) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        let mut other = None;
        for (j, &to) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut least = at(&row, j) + usize::from(from != to);
            least = least.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            if j > 0 && last == Some(to) && other == Some(from) {
                least = least.min(at(&before, j - 1) + 1);
            }
            next.push(least);
            other = Some(to);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(from);
    }
    row.last().copied().unwrap_or_default()
}

/// Joins words as a quoted, comma-separated list.
pub(crate) fn list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_most_similar_word() {
        let known = ["codex", "claude", "gemini", "opencode"];
        for (typed, meant) in [
            ("codx", Some("codex")),
            ("coedx", Some("codex")),
            ("Claude", Some("claude")),
            ("claude-code", Some("claude")),
            ("gem", Some("gemini")),
            ("cursor", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, &known), meant, "{typed}");
        }
    }

    #[test]
    fn computes_edit_distances() {
        let count = |a: &str, b: &str| {
            distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("abcd", "acbd"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
