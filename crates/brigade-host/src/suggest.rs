//! Suggests a known name for a mistyped name.

/// Returns the known name that is most similar to `word`, or `None` if no known name is similar.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let typed: Vec<char> = word.to_lowercase().chars().collect();
    // Reject long words: the cost grows with the square of the length, and no known name is that long.
    if typed.len() > 64 {
        return None;
    }
    let if_similar = |known: &&'k str| {
        let name: Vec<char> = known.to_lowercase().chars().collect();
        let is_prefix = typed.len() >= 3 && (name.starts_with(&typed) || typed.starts_with(&name));
        let distance = distance(&typed, &name);
        let allowed = (typed.len().max(name.len()) / 3).max(1);
        (distance <= allowed || is_prefix).then_some((distance, *known))
    };
    known
        .iter()
        .filter_map(if_similar)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns a question that names the most similar known name, followed by a space. Returns an empty text if no known name is
/// similar.
pub fn question(word: &str, known: &[impl AsRef<str>]) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    nearest(word, &known).map(|name| format!("did you mean {name}? ")).unwrap_or_default()
}

/// Returns the edit distance, which counts insertions, deletions, replacements and swaps of neighbours.
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

/// Returns the names in quotes, separated by commas.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["codex", "claude", "gemini", "opencode"];
        for (typed, suggested) in [
            ("codx", Some("codex")),
            ("coedx", Some("codex")),
            ("Claude", Some("claude")),
            ("claude-code", Some("claude")),
            ("gem", Some("gemini")),
            ("cursor", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, &known), suggested, "{typed}");
        }
    }

    #[test]
    fn edit_distance_counts_single_changes() {
        let count = |a: &str, b: &str| {
            distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("abcd", "acbd"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
