//! Tells a model about its interrupted turns, for an agent that does not.

/// Introduces the texts of interrupted turns that the agent has forgotten.
const FORGOTTEN: &str = "Your previous turn was interrupted, and your history does not contain its messages. Do not continue that \
     turn unless the new messages ask for it. Its messages were:";
/// Precedes the next text if the agent's session contains the messages of the interrupted turn.
const NOT_FORGOTTEN: &str = "Your previous turn was interrupted, and its last tool calls were ended. Do not continue that turn \
     unless the new messages ask for it.";

/// The interrupted turns that the model has not been told about.
#[derive(Debug, Default)]
pub(super) struct InterruptedTurns {
    /// The texts of turns that the agent has removed from its session.
    pub(super) forgotten: Vec<String>,
    /// Whether the last turn was interrupted.
    pub(super) is_last: bool,
}

impl InterruptedTurns {
    /// Returns the text that must precede the next prompt, if any.
    pub(super) fn note(&self) -> Option<String> {
        let texts = self.forgotten.join("\n\n");
        let note = match (self.forgotten.is_empty(), self.is_last) {
            (false, _) => format!("{FORGOTTEN}\n\n{texts}"),
            (true, true) => NOT_FORGOTTEN.to_owned(),
            (true, false) => return None,
        };
        Some(format!("{note}\n\nThe new messages are:\n\n"))
    }
}
