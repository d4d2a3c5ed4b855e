//! `settings.json`: what a person has set for a whole program. Claude Code and Gemini CLI both keep one,
//! an object whose members are settings or sections of them.
//!
//! ```
//! use brigade_wire::settings::{Place, SettingChange, Settings};
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let settings = Settings::read(br#"{"theme": "dark"}"#)?;
//! let place = Place { section: Some("env"), key: "LANG" };
//! let on = SettingChange { place, value: Some(&"C.UTF-8".into()) };
//! let changed = settings.with(&[on])?;
//! assert_eq!(Settings::read(&changed)?.get(place), Some("C.UTF-8".into()));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;

use serde_json::Value;

use crate::document::{Damage, Document, Object, Span};
use crate::patch::{ObjectEdit, Ordered, Patch};

/// A file that says nothing, for a program that has none yet.
pub const EMPTY: &[u8] = b"{}\n";

/// The settings of a program, as a view over their bytes.
#[derive(Debug)]
pub struct Settings<'a> {
    document: Document<'a>,
    object: Object,
}

/// Where a setting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'p> {
    /// The section it is in, `env` for one; `None` for a setting that stands by itself.
    pub section: Option<&'p str>,
    /// Its name.
    pub key: &'p str,
}

/// What a setting shall be; with `None` it is taken out.
#[derive(Clone, Copy, Debug)]
pub struct SettingChange<'c> {
    /// Which one.
    pub place: Place<'c>,
    /// What it shall be.
    pub value: Option<&'c Value>,
}

impl<'a> Settings<'a> {
    /// Reads settings. Comments are not JSON, and are damage.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = Document::new(bytes);
        let object = document.root_object("an object of settings")?;
        Ok(Self { document, object })
    }

    /// The bytes as they were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.object.members.is_empty()
    }

    /// What is set there, if anything is.
    pub fn get(&self, place: Place<'_>) -> Option<Value> {
        let span = match place.section {
            None => self.document.get(&self.object, place.key)?,
            Some(section) => {
                let section = self.document.object(self.member(section)?)?;
                self.document.get(&section, place.key)?
            }
        };
        serde_json::from_str(self.document.raw(span)).ok()
    }

    /// Whether there is a member of that name at the top.
    pub fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// The JSON of any member, as it stands.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        Some(self.document.original(self.member(name)?))
    }

    /// The file with the changes made, and nothing else changed; borrowed if there is nothing to
    /// change. A section is made for what has to stand in it, and stays when nothing does any more;
    /// one that is not an object is damage, for it is not ours to replace.
    pub fn with(&self, changes: &[SettingChange<'_>]) -> Result<Cow<'a, [u8]>, Damage> {
        let of = |section| changes.iter().filter(move |change| change.place.section == section);
        let mut sections: Vec<&str> = changes.iter().filter_map(|c| c.place.section).collect();
        sections.sort_unstable();
        sections.dedup();
        // Whoever sets a member as a whole has the last word on what is in it.
        sections.retain(|&section| of(None).all(|change| change.place.key != section));
        let mut patch = Patch::default();
        let mut top = ObjectEdit::new(&self.document, &self.object);
        for change in of(None) {
            change.record(&mut top);
        }
        for &section in &sections {
            let Some(span) = self.member(section) else {
                let set = Ordered::new(of(Some(section)).map(|c| (c.place.key, c.value)));
                if !set.is_empty() {
                    top.set(section, &set);
                }
                continue;
            };
            let found = self.document.kind(span);
            let shape = Damage::Shape { expected: "a section of settings", found };
            let object = self.document.object(span).ok_or(shape)?;
            let mut edit = ObjectEdit::new(&self.document, &object);
            for change in of(Some(section)) {
                change.record(&mut edit);
            }
            edit.finish(&mut patch);
        }
        top.finish(&mut patch);
        Ok(patch.apply(&self.document))
    }

    /// The file without those of these sections in which nothing stands; borrowed if there is none.
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

    fn member(&self, name: &str) -> Option<Span> {
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
