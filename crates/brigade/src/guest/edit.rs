//! What is put into a text, and the same text without it.

use std::borrow::Cow;

use brigade_wire::Damage;
use brigade_wire::settings::{self, Place, SettingChange, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::Touched;

/// What a file shall say.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// These settings, among others.
    Settings(Vec<Wish>),
    /// These pieces of text at its end.
    Pieces(Vec<String>),
    /// This and nothing else.
    Whole(String),
}

/// What becomes of the file.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    /// What to do, if anything.
    pub(crate) edit: Option<Edit>,
    /// What was left alone, and why.
    pub(crate) left: Option<String>,
}

impl Advice {
    pub(crate) fn leave(why: impl Into<String>) -> Self {
        Self { edit: None, left: Some(why.into()) }
    }
}

/// A setting that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) section: Option<&'static str>,
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// What of a file is ours.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Put {
    Settings {
        settings: Vec<OurSetting>,
        /// The sections that were made for them.
        sections: Vec<String>,
    },
    Pieces(Vec<String>),
    Whole,
}

/// A setting of ours, and what it was before.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct OurSetting {
    pub(crate) section: Option<String>,
    pub(crate) key: String,
    pub(crate) was: Option<Value>,
    pub(crate) is: Value,
}

impl OurSetting {
    fn place(&self) -> Place<'_> {
        Place { section: self.section.as_deref(), key: &self.key }
    }
}

/// A text with the edit made.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// The same text without us; `None` if there was no file.
    pub(crate) before: Option<String>,
    pub(crate) put: Put,
}

/// Makes an edit in a text that may have been edited by us before. `None` if there is nothing to do.
pub(crate) fn make(
    edit: &Edit,
    now: Option<&str>,
    known: Option<&Touched>,
) -> Result<Option<Edited>, Damage> {
    let before = match (now, known) {
        (Some(now), Some(known)) if known.is_as_left(now) => known.before.clone(),
        (Some(now), Some(known)) => Some(without(&known.put, now)?.into_owned()),
        (now, _) => now.map(str::to_owned),
    };
    let (text, put) = match edit {
        Edit::Settings(wishes) => {
            let known = known.map(|known| &known.put);
            let put = settings_put(wishes, before.as_deref(), known)?;
            (set(wishes, now)?, put)
        }
        Edit::Pieces(pieces) => {
            let text = before.as_deref().unwrap_or_default().to_owned() + &pieces.concat();
            (text, Put::Pieces(pieces.clone()))
        }
        Edit::Whole(text) => (text.clone(), Put::Whole),
    };
    Ok((now != Some(&text)).then_some(Edited { text, before, put }))
}

/// The text without what is ours in it. What is no longer as we put it is not ours.
pub(crate) fn without<'t>(put: &Put, now: &'t str) -> Result<Cow<'t, str>, Damage> {
    match put {
        Put::Settings { settings, sections } => {
            let view = Settings::read(now.as_bytes())?;
            let ours =
                settings.iter().filter(|ours| view.get(ours.place()).as_ref() == Some(&ours.is));
            let back: Vec<SettingChange<'_>> = ours
                .map(|ours| SettingChange { place: ours.place(), value: ours.was.as_ref() })
                .collect();
            let text = view.with(&back)?;
            let sections: Vec<&str> = sections.iter().map(String::as_str).collect();
            let text = Settings::read(&text)?.without_empty(&sections).into_owned();
            Ok(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
        }
        Put::Pieces(pieces) => {
            let text =
                pieces.iter().fold(now.to_owned(), |text, piece| text.replacen(piece, "", 1));
            Ok(Cow::Owned(text))
        }
        Put::Whole => Ok(Cow::Borrowed(now)),
    }
}

/// Whether nothing is said by what is left of a file that we made.
pub(crate) fn says_nothing(put: &Put, text: &str) -> bool {
    match put {
        Put::Settings { .. } => {
            Settings::read(text.as_bytes()).is_ok_and(|settings| settings.is_empty())
        }
        Put::Pieces(_) | Put::Whole => text.trim().is_empty(),
    }
}

fn set(wishes: &[Wish], now: Option<&str>) -> Result<String, Damage> {
    let view = Settings::read(now.map_or(settings::EMPTY, str::as_bytes))?;
    let change = |wish: &'_ Wish| {
        let place = Place { section: wish.section, key: wish.key };
        (place, wish.value.clone())
    };
    let changes: Vec<(Place<'_>, Value)> = wishes.iter().map(change).collect();
    let changes: Vec<SettingChange<'_>> = changes
        .iter()
        .map(|(place, value)| SettingChange { place: *place, value: Some(value) })
        .collect();
    Ok(String::from_utf8_lossy(&view.with(&changes)?).into_owned())
}

/// What is ours once the wishes are granted: these, and what we had put there before.
fn settings_put(wishes: &[Wish], before: Option<&str>, known: Option<&Put>) -> Result<Put, Damage> {
    let view = Settings::read(before.map_or(settings::EMPTY, str::as_bytes))?;
    let wanted = wishes.iter().map(|wish| (wish.section, wish.key, &wish.value));
    let mut all: Vec<(Option<&str>, &str, &Value)> = wanted.collect();
    if let Some(Put::Settings { settings, .. }) = known {
        for ours in settings {
            let (section, key) = (ours.section.as_deref(), ours.key.as_str());
            if !all.iter().any(|(s, k, _)| (*s, *k) == (section, key)) {
                all.push((section, key, &ours.is));
            }
        }
    }
    let ours = all.into_iter().map(|(section, key, is)| OurSetting {
        was: view.get(Place { section, key }),
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
    Ok(Put::Settings { settings, sections })
}
