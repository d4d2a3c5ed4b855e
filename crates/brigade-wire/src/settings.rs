//! `settings.json`: the user's settings for Claude Code or Gemini CLI. The file is a JSON object. Its members are
//! settings, or sections that contain settings.
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

/// The content of an empty settings file.
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
    /// The section that contains the setting, such as `env`; `None` for a top-level setting.
    pub section: Option<&'p str>,
    /// The name of the setting.
    pub key: &'p str,
}

/// A change to one setting.
#[derive(Clone, Copy, Debug)]
pub struct SettingChange<'c> {
    /// The setting to change.
    pub place: SettingPath<'c>,
    /// The new value; `None` removes the setting.
    pub value: Option<&'c Value>,
}

impl<'a> SettingsFile<'a> {
    /// Reads a settings file. A file with comments is not JSON, so reading it fails.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = JsonDocument::new(bytes);
        let object = document.root_object("an object of settings")?;
        Ok(Self { document, object })
    }

    /// Returns the bytes from which the settings were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Returns whether the file contains no settings.
    pub fn is_empty(&self) -> bool {
        self.object.members.is_empty()
    }

    /// Returns the value of a setting; `None` if it is not set.
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

    /// Returns whether there is a top-level setting or section with this name.
    pub fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// Returns the JSON of a top-level setting or section, exactly as it stands in the file.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        Some(self.document.original(self.member(name)?))
    }

    /// Returns the file with the changes applied and everything else unchanged. Returns the borrowed original if
    /// nothing changes. Creates missing sections, and keeps sections that become empty. Fails if the value of a
    /// section is not an object, because that value must not be overwritten.
    pub fn with(&self, changes: &[SettingChange<'_>]) -> Result<Cow<'a, [u8]>, Damage> {
        let changes_in =
            |section| changes.iter().filter(move |change| change.place.section == section);
        let mut sections: Vec<&str> = changes.iter().filter_map(|c| c.place.section).collect();
        sections.sort_unstable();
        sections.dedup();
        // A change to a whole section takes precedence over changes to settings in it.
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

    /// Returns the file without the empty sections among `sections`. Returns the borrowed original if nothing
    /// changes.
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
