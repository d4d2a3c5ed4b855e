//! `settings.json`: the user settings of Claude Code or Gemini CLI. It is an object whose members are settings
//! or sections of settings.
//!
//! ```
//! use brigade_wire::settings::{SettingPath, SettingChange, SettingsFile};
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let settings = SettingsFile::read(br#"{"theme": "dark"}"#)?;
//! let place = SettingPath { section: Some("env"), key: "LANG" };
//! let change = SettingChange { place, value: Some(&"C.UTF-8".into()) };
//! let changed = settings.with(&[change])?;
//! assert_eq!(SettingsFile::read(&changed)?.get(place), Some("C.UTF-8".into()));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;

use serde_json::Value;

use crate::document::{ByteSpan, Damage, JsonDocument, Object};
use crate::patch::{ObjectEdit, Ordered, Patch};

/// An empty settings file.
pub const EMPTY: &[u8] = b"{}\n";

/// A view of a settings file.
#[derive(Debug)]
pub struct SettingsFile<'a> {
    document: JsonDocument<'a>,
    object: Object,
}

/// The location of a setting in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingPath<'p> {
    /// The section it is in, such as `env`; `None` for a top-level setting.
    pub section: Option<&'p str>,
    /// Its name.
    pub key: &'p str,
}

/// A change to one setting.
#[derive(Clone, Copy, Debug)]
pub struct SettingChange<'c> {
    /// The setting.
    pub place: SettingPath<'c>,
    /// Its new value; `None` removes it.
    pub value: Option<&'c Value>,
}

impl<'a> SettingsFile<'a> {
    /// Reads settings. A file with comments is not JSON, and is an error.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = JsonDocument::new(bytes);
        let object = document.root_object("an object of settings")?;
        Ok(Self { document, object })
    }

    /// The bytes as they were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Whether there are no settings.
    pub fn is_empty(&self) -> bool {
        self.object.members.is_empty()
    }

    /// Returns the value of a setting.
    pub fn get(&self, place: SettingPath<'_>) -> Option<Value> {
        let span = match place.section {
            None => self.document.get(&self.object, place.key)?,
            Some(section) => {
                let section = self.document.object(self.member(section)?)?;
                self.document.get(&section, place.key)?
            }
        };
        serde_json::from_str(self.document.raw(span)).ok()
    }

    /// Whether there is a top-level member with this name.
    pub fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// The JSON of a top-level member, as written.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        Some(self.document.original(self.member(name)?))
    }

    /// Returns the file with the changes applied and everything else unchanged; borrowed if nothing changes.
    /// A missing section is created, and an empty section stays. A section that is not an object is an error,
    /// because it must not be overwritten.
    pub fn with(&self, changes: &[SettingChange<'_>]) -> Result<Cow<'a, [u8]>, Damage> {
        let changes_in =
            |section| changes.iter().filter(move |change| change.place.section == section);
        let mut sections: Vec<&str> = changes.iter().filter_map(|c| c.place.section).collect();
        sections.sort_unstable();
        sections.dedup();
        // A change to a whole top-level member takes precedence over changes inside it.
        sections.retain(|&section| changes_in(None).all(|change| change.place.key != section));
        let mut patch = Patch::default();
        let mut top = ObjectEdit::new(&self.document, &self.object);
        for change in changes_in(None) {
            change.record(&mut top);
        }
        for &section in &sections {
            let Some(span) = self.member(section) else {
                let set = Ordered::new(changes_in(Some(section)).map(|c| (c.place.key, c.value)));
                if !set.is_empty() {
                    top.set(section, &set);
                }
                continue;
            };
            let found = self.document.kind(span);
            let shape = Damage::Shape { expected: "a section of settings", found };
            let object = self.document.object(span).ok_or(shape)?;
            let mut edit = ObjectEdit::new(&self.document, &object);
            for change in changes_in(Some(section)) {
                change.record(&mut edit);
            }
            edit.finish(&mut patch);
        }
        top.finish(&mut patch);
        Ok(patch.apply(&self.document))
    }

    /// Returns the file without those of `sections` that are empty; borrowed if nothing changes.
    pub fn without_empty(&self, sections: &[&str]) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        for &name in sections {
            let section = self.member(name).and_then(|span| self.document.object(span));
            if section.is_some_and(|section| section.members.is_empty()) {
                edit.remove(name);
            }
        }
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    fn member(&self, name: &str) -> Option<ByteSpan> {
        self.document.get(&self.object, name)
    }
}

impl<'c> SettingChange<'c> {
    fn record<'d>(&self, edit: &mut ObjectEdit<'d>)
    where
        'c: 'd,
    {
        match self.value {
            Some(value) => edit.set(self.place.key, value),
            None => edit.remove(self.place.key),
        }
    }
}
