//! Claude Code's own session record: one line of JSON for each event.

/// Lines of these kinds are what its model will see again: user messages, texts that joined a turn, and
/// its own messages. Other lines contain the same texts but do not count: a text waiting in its queue
/// is in the record, and lost when the program ends.
const KINDS: [&str; 3] = [r#""type":"user""#, r#""type":"attachment""#, r#""type":"assistant""#];

/// The conversation in a record without its last line: 2.1.50 drops a text that joined a turn if
/// nothing followed it.
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
    fn a_queued_text_is_not_part_of_the_conversation() {
        let queued = r#"{"type":"queue-operation","operation":"enqueue","content":"[mail 2]"}"#;
        let sent = r#"{"type":"api-request-blob","value":{"role":"user","content":"[mail 2]"}}"#;
        let prompt = r#"{"type":"user","message":{"role":"user","content":"[mail 1]"}}"#;
        let joined =
            r#"{"attachment":{"type":"queued_command","prompt":"[mail 2]"},"type":"attachment"}"#;
        let reply = r#"{"type":"assistant","message":{"role":"assistant","content":[]}}"#;
        for (record, expected) in [
            (vec![], vec![]),
            (vec![prompt], vec![]),
            (vec![prompt, reply, queued], vec![prompt]),
            (vec![prompt, reply, queued, sent], vec![prompt]),
            (vec![prompt, reply, queued, joined], vec![prompt, reply]),
            (vec![prompt, reply, queued, joined, sent, reply], vec![prompt, reply, joined]),
        ] {
            assert_eq!(conversation(&record.join("\n")), expected.join("\n"), "{record:?}");
        }
    }
}
