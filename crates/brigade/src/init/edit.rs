//! Adds brigade's settings to the text of a file, and removes them.

use std::borrow::Cow;

use brigade_wire::Damage;
use brigade_wire::settings::{self, SettingChange, SettingPath, SettingsFile};
use serde_json::Value;

use super::record::{ChangedFile, OurContent, OurSetting};

/// An edit of a file.
#[derive(Clone, Debug)]
pub(crate) enum FileEdit {
    /// Set these settings and keep all others.
    Settings(Vec<WantedSetting>),
    /// Append these pieces of text.
    Pieces(Vec<String>),
    /// Replace the whole text.
    Whole(String),
}

/// The decision whether and how to edit a file.
#[derive(Debug, Default)]
pub(crate) struct EditDecision {
    /// The edit to make, if any.
    pub(crate) edit: Option<FileEdit>,
    /// Why the file is left unchanged, if it should have been edited.
    pub(crate) left: Option<String>,
}

impl EditDecision {
    pub(crate) fn leave_alone(why: impl Into<String>) -> Self {
        Self { edit: None, left: Some(why.into()) }
    }
}

/// A setting to write.
#[derive(Clone, Debug)]
pub(crate) struct WantedSetting {
    pub(crate) section: Option<&'static str>,
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// The result of an edit.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// The text without brigade's changes; `None` if the file did not exist.
    pub(crate) before: Option<String>,
    pub(crate) put: OurContent,
}

/// Applies an edit to a text that brigade may have edited before. Returns `None` if the text stays the same.
pub(crate) fn make(
    edit: &FileEdit,
    now: Option<&str>,
    known: Option<&ChangedFile>,
) -> Result<Option<Edited>, Damage> {
    let before = match (now, known) {
        (Some(now), Some(known)) if known.is_as_left(now) => known.before.clone(),
        (Some(now), Some(known)) => Some(without(&known.put, now)?.into_owned()),
        (now, _) => now.map(str::to_owned),
    };
    let (text, put) = match edit {
        FileEdit::Settings(wanted) => {
            let known = known.map(|known| &known.put);
            let put = settings_put(wanted, before.as_deref(), known)?;
            (set(wanted, now)?, put)
        }
        FileEdit::Pieces(pieces) => {
            let text = before.as_deref().unwrap_or_default().to_owned() + &pieces.concat();
            (text, OurContent::Pieces(pieces.clone()))
        }
        FileEdit::Whole(text) => (text.clone(), OurContent::Whole),
    };
    Ok((now != Some(&text)).then_some(Edited { text, before, put }))
}

/// Removes brigade's settings from a text. Keeps a setting whose value has changed since.
pub(crate) fn without<'t>(put: &OurContent, now: &'t str) -> Result<Cow<'t, str>, Damage> {
    match put {
        OurContent::Settings { settings, sections } => {
            let view = SettingsFile::read(now.as_bytes())?;
            let ours =
                settings.iter().filter(|ours| view.get(ours.place()).as_ref() == Some(&ours.is));
            let back: Vec<SettingChange<'_>> = ours
                .map(|ours| SettingChange { place: ours.place(), value: ours.was.as_ref() })
                .collect();
            let text = view.with(&back)?;
            let sections: Vec<&str> = sections.iter().map(String::as_str).collect();
            let text = SettingsFile::read(&text)?.without_empty(&sections).into_owned();
            Ok(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
        }
        OurContent::Pieces(pieces) => Ok(Cow::Owned(without_pieces(pieces, now))),
        OurContent::Whole => Ok(Cow::Borrowed(now)),
    }
}

/// Cuts the first occurrence of each piece out of a text.
pub(crate) fn without_pieces(pieces: &[String], now: &str) -> String {
    pieces.iter().fold(now.to_owned(), |text, piece| text.replacen(piece, "", 1))
}

/// Returns whether a file that brigade created is empty after brigade's settings were removed.
pub(crate) fn is_empty(put: &OurContent, text: &str) -> bool {
    match put {
        OurContent::Settings { .. } => {
            SettingsFile::read(text.as_bytes()).is_ok_and(|settings| settings.is_empty())
        }
        OurContent::Pieces(_) | OurContent::Whole => text.trim().is_empty(),
    }
}

fn set(wanted: &[WantedSetting], now: Option<&str>) -> Result<String, Damage> {
    let view = SettingsFile::read(now.map_or(settings::EMPTY, str::as_bytes))?;
    let change = |setting: &'_ WantedSetting| {
        let place = SettingPath { section: setting.section, key: setting.key };
        (place, setting.value.clone())
    };
    let changes: Vec<(SettingPath<'_>, Value)> = wanted.iter().map(change).collect();
    let changes: Vec<SettingChange<'_>> = changes
        .iter()
        .map(|(place, value)| SettingChange { place: *place, value: Some(value) })
        .collect();
    Ok(String::from_utf8_lossy(&view.with(&changes)?).into_owned())
}

/// Returns all settings that belong to brigade after the edit: new settings and settings from earlier edits.
fn settings_put(
    wanted: &[WantedSetting],
    before: Option<&str>,
    known: Option<&OurContent>,
) -> Result<OurContent, Damage> {
    let view = SettingsFile::read(before.map_or(settings::EMPTY, str::as_bytes))?;
    let wanted = wanted.iter().map(|setting| (setting.section, setting.key, &setting.value));
    let mut all: Vec<(Option<&str>, &str, &Value)> = wanted.collect();
    if let Some(OurContent::Settings { settings, .. }) = known {
        for ours in settings {
            let (section, key) = (ours.section.as_deref(), ours.key.as_str());
            if !all.iter().any(|(s, k, _)| (*s, *k) == (section, key)) {
                all.push((section, key, &ours.is));
            }
        }
    }
    let ours = all.into_iter().map(|(section, key, is)| OurSetting {
        was: view.get(SettingPath { section, key }),
        section: section.map(str::to_owned),
        key: key.to_owned(),
        is: is.clone(),
    });
    let settings: Vec<OurSetting> =
        ours.filter(|ours| ours.was.as_ref() != Some(&ours.is)).collect();
    let mut sections: Vec<String> = settings.iter().filter_map(|s| s.section.clone()).collect();
    sections.sort_unstable();
    sections.dedup();
    sections.retain(|section| !view.has(section));
    Ok(OurContent::Settings { settings, sections })
}
