//! Claude Code's own record of a session, a line of JSON for each thing that happened.

/// Lines of these kinds are what its model will see again: what the user said, what joined a turn, what it
/// said itself. Others hold the same words and are not: a text that waits in its queue is in the record, and
/// gone when the program is.
const KINDS: [&str; 3] = [r#""type":"user""#, r#""type":"attachment""#, r#""type":"assistant""#];

/// The conversation in a record, but for its last line: 2.1.50 drops a text that joined a turn when nothing
/// came after it.
pub(super) fn conversation(record: &str) -> String {
    let mut lines: Vec<&str> =
        record.lines().filter(|line| KINDS.iter().any(|kind| line.contains(kind))).collect();
    lines.pop();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::conversation;

    #[test]
    fn a_text_that_only_waits_is_not_in_the_conversation() {
        let queued = r#"{"type":"queue-operation","operation":"enqueue","content":"[mail 2]"}"#;
        let sent = r#"{"type":"api-request-blob","value":{"role":"user","content":"[mail 2]"}}"#;
        let prompt = r#"{"type":"user","message":{"role":"user","content":"[mail 1]"}}"#;
        let joined =
            r#"{"attachment":{"type":"queued_command","prompt":"[mail 2]"},"type":"attachment"}"#;
        let said = r#"{"type":"assistant","message":{"role":"assistant","content":[]}}"#;
        for (record, holds) in [
            (vec![], vec![]),
            (vec![prompt], vec![]),
            (vec![prompt, said, queued], vec![prompt]),
            (vec![prompt, said, queued, sent], vec![prompt]),
            (vec![prompt, said, queued, joined], vec![prompt, said]),
            (vec![prompt, said, queued, joined, sent, said], vec![prompt, said, joined]),
        ] {
            assert_eq!(conversation(&record.join("\n")), holds.join("\n"), "{record:?}");
        }
    }
}
