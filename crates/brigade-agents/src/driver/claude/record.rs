//! Reads Claude Code's own session record, which has one line of JSON for each event.

/// The kinds of lines that Claude Code's model sees again after a resume: user messages, texts that joined a
/// running turn, and the model's own messages. Lines of other kinds do not count, even if they contain the same
/// texts: for example, the record contains queued texts, but these are lost when the program ends.
const KINDS: [&str; 3] = [r#""type":"user""#, r#""type":"attachment""#, r#""type":"assistant""#];

/// Returns the lines of a record that the model sees again. Leaves out the last of these lines: if no line follows
/// a text that joined a turn, Claude Code 2.1.50 drops the text.
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
