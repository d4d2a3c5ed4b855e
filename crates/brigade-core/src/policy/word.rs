//! A word of a command line, without its quotes.

/// A word of a command line. Its quotes are removed. Each character is either literal, or part of a pattern for file
/// names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    text: String,
    /// For each character, whether it is part of a pattern.
    pattern: Vec<bool>,
}

impl Word {
    /// Returns the text without quotes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the word contains no pattern for file names, so that no shell changes it.
    pub fn is_literal(&self) -> bool {
        !self.pattern.contains(&true)
    }

    /// Returns the literal text before the first pattern character.
    pub(super) fn literal_start(&self) -> &str {
        let end = self.characters().find(|(_, is_pattern)| *is_pattern).map(|(at, _)| at);
        end.and_then(|end| self.text.get(..end)).unwrap_or(&self.text)
    }

    /// Returns each character's offset, and whether the character is part of a pattern.
    fn characters(&self) -> impl Iterator<Item = (usize, bool)> {
        let offsets = self.text.char_indices().map(|(at, _)| at);
        offsets.zip(self.pattern.iter().copied())
    }

    /// Returns the characters, and whether each is part of a pattern.
    pub(super) fn signs(&self) -> impl Iterator<Item = (char, bool)> {
        self.text.chars().zip(self.pattern.iter().copied())
    }
}

/// Writes a word so that every shell reads it back as this text.
pub fn quote(text: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:,@%+".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Collects the characters of a word.
#[derive(Debug, Default)]
pub(super) struct WordBuilder {
    word: Word,
    /// The offset of the first quoted character, or of an empty quotation.
    quoted_at: Option<usize>,
}

impl WordBuilder {
    /// Adds an unquoted literal character.
    pub(super) fn push(&mut self, character: char) {
        self.word.text.push(character);
        self.word.pattern.push(false);
    }

    /// Adds an unquoted character of a pattern.
    pub(super) fn push_pattern(&mut self, character: char) {
        self.word.text.push(character);
        self.word.pattern.push(true);
    }

    /// Adds quoted text.
    pub(super) fn push_quoted(&mut self, text: &str) {
        self.quoted_at.get_or_insert(self.word.text.len());
        text.chars().for_each(|character| self.push(character));
    }

    /// Returns whether the word has neither text nor quotes yet.
    pub(super) fn is_empty(&self) -> bool {
        self.word.text.is_empty() && self.quoted_at.is_none()
    }

    /// Returns whether a `~` at this position can be expanded.
    pub(super) fn ends_at_tilde_prefix(&self) -> bool {
        self.word.text.is_empty() || self.word.text.ends_with(['=', ':'])
    }

    /// Returns whether the word is a single unquoted digit. Before `<` or `>`, such a word is a descriptor. `dash`
    /// accepts no other descriptors.
    pub(super) fn is_descriptor(&self) -> bool {
        let text = self.word.text.as_bytes();
        self.quoted_at.is_none() && text.len() == 1 && text.iter().all(u8::is_ascii_digit)
    }

    /// Returns the name of the variable if the word is an assignment.
    pub(super) fn assigned_name(&self) -> Option<&str> {
        let (name, _) = self.word.text.split_once('=')?;
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let valid = name.starts_with(is_letter)
            && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
            && self.quoted_at.is_none_or(|quoted_at| quoted_at > name.len());
        valid.then_some(name)
    }

    /// Returns the value of an assignment.
    pub(super) fn after_name(self) -> Word {
        let Word { text, pattern } = self.finish();
        let (name, value) = text.split_once('=').unwrap_or_default();
        let after = pattern.get(name.chars().count() + 1..).unwrap_or_default();
        Word { text: value.to_owned(), pattern: after.to_vec() }
    }

    pub(super) fn finish(self) -> Word {
        let Self { mut word, quoted_at } = self;
        if quoted_at.is_none() && matches!(word.text.as_str(), "[" | "]") {
            // The command `test` in its other form.
            word.pattern = vec![false];
            return word;
        }
        // The characters between brackets are alternatives.
        let bracket = word.signs().position(|sign| sign == ('[', true));
        if let Some(from) = bracket {
            word.pattern.iter_mut().skip(from).for_each(|is_pattern| *is_pattern = true);
        }
        word
    }
}
