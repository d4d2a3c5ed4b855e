//! The kinds of values in a team file. One definition gives both the parser and the JSON Schema of each kind, so
//! that the two cannot disagree.

use std::ops::Range;

use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::mistake::Mistakes;

/// A kind of value in a team file.
pub(super) trait TomlValue: Sized {
    /// Reads a value. If the value is invalid, adds a mistake and returns `None`.
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self>;

    /// Returns the JSON Schema of this kind of value.
    fn schema() -> Value;
}

/// A value and its byte range in the file.
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    pub(super) span: Range<usize>,
    pub(super) value: T,
}

/// The value of a key in a table.
#[derive(Clone, Debug, Default)]
pub(super) enum Field<T> {
    #[default]
    Absent,
    /// The key is present but its value is invalid. The mistake is already recorded.
    Broken,
    Given(Located<T>),
}

impl<T> Field<T> {
    pub(super) fn from_read(read: Option<Located<T>>) -> Self {
        read.map_or(Self::Broken, Self::Given)
    }

    pub(super) fn located(&self) -> Option<&Located<T>> {
        match self {
            Self::Given(located) => Some(located),
            Self::Absent | Self::Broken => None,
        }
    }

    pub(super) fn get(&self) -> Option<&T> {
        self.located().map(|at| &at.value)
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// A table whose keys are names that the user chose. The entries are in the order of the file.
#[derive(Debug)]
pub(super) struct Named<T>(pub(super) Vec<(Located<String>, T)>);

/// A table with fixed keys.
pub(super) trait TomlTable: Default {
    /// Stores the value of a key. Returns the value if this kind of table has no such key.
    fn take<'v>(
        &mut self,
        key: &str,
        value: Spanned<DeValue<'v>>,
        mistakes: &mut Mistakes,
    ) -> Option<Spanned<DeValue<'v>>>;

    /// Adds the JSON Schemas of the table's keys to `properties`.
    fn properties(properties: &mut Map<String, Value>);

    /// Returns the description of the table.
    fn about() -> String;

    /// Returns the keys that the table must have.
    fn required() -> &'static [&'static str];
}

impl<T: TomlTable> TomlValue for T {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let mut table = T::default();
        let mut properties = Map::new();
        for (key, value) in entries(value, mistakes)? {
            if table.take(&key.value, value, mistakes).is_some() {
                if properties.is_empty() {
                    T::properties(&mut properties);
                }
                let known = properties.keys().map(String::as_str);
                let message = format!("unknown key {:?}", key.value);
                mistakes.unknown(&key.span, message, &key.value, known);
            }
        }
        Some(table)
    }

    fn schema() -> Value {
        let mut properties = Map::new();
        T::properties(&mut properties);
        json!({
            "type": "object",
            "description": T::about(),
            "properties": properties,
            "required": T::required(),
            "additionalProperties": false,
        })
    }
}

/// Returns the keys and values of a table in the order of the file. The parsed map does not keep that order.
fn entries<'v>(
    value: Spanned<DeValue<'v>>,
    mistakes: &mut Mistakes,
) -> Option<Vec<(Located<String>, Spanned<DeValue<'v>>)>> {
    let span = value.span();
    let DeValue::Table(table) = value.into_inner() else {
        mistakes.add(&span, "this must be a table");
        return None;
    };
    let mut entries: Vec<_> = table
        .into_iter()
        .map(|(key, value)| {
            (Located { span: key.span(), value: key.into_inner().into_owned() }, value)
        })
        .collect();
    entries.sort_by_key(|(key, _)| key.span.start);
    Some(entries)
}

impl<T: TomlValue> TomlValue for Located<T> {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        Some(Self { span: value.span(), value: T::read(value, mistakes)? })
    }

    fn schema() -> Value {
        T::schema()
    }
}

impl<T: TomlValue> TomlValue for Named<T> {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let entries = entries(value, mistakes)?.into_iter();
        let read = |(key, value)| Some((key, T::read(value, mistakes)?));
        Some(Self(entries.filter_map(read).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

impl<T: TomlValue> TomlValue for Vec<T> {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let DeValue::Array(array) = value.into_inner() else {
            mistakes.add(&span, "this must be a list, in [ ]");
            return None;
        };
        let values = array.into_iter().map(|value| T::read(value, mistakes));
        // Read all values before returning, so that every mistake is recorded.
        let values: Vec<Option<T>> = values.collect();
        values.into_iter().collect()
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl TomlValue for bool {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let is = value.get_ref().as_bool();
        if is.is_none() {
            mistakes.add(&value.span(), "this must be true or false");
        }
        is
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl TomlValue for String {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            mistakes.add(&value.span(), "this must be text, in quotation marks");
        }
        text
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// Defines tables. Their doc comments become descriptions in the JSON Schema. `with` adds another table's keys.
macro_rules! tables {
    ($(
        $(#[doc = $about:literal])*
        $name:ident $(with $base_field:ident: $base:ident)? $(needs $required:literal)? {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Default)]
        pub(super) struct $name {
            $(pub(super) $base_field: $base,)?
            $($(#[doc = $doc])* pub(super) $field: Field<$type>,)*
        }

        impl TomlTable for $name {
            fn take<'v>(
                &mut self,
                key: &str,
                value: Spanned<DeValue<'v>>,
                mistakes: &mut Mistakes,
            ) -> Option<Spanned<DeValue<'v>>> {
                $(let value = self.$base_field.take(key, value, mistakes)?;)?
                $(
                    if key == key_name(stringify!($field)) {
                        self.$field = Field::from_read(TomlValue::read(value, mistakes));
                        return None;
                    }
                )*
                Some(value)
            }

            fn properties(properties: &mut Map<String, Value>) {
                $($base::properties(properties);)?
                $(
                    let schema = with_copied_member(<$type>::schema(), "description", &doc_text(&[$($doc),*]));
                    properties.insert(key_name(stringify!($field)), schema);
                )*
            }

            fn about() -> String {
                doc_text(&[$($about),*])
            }

            fn required() -> &'static [&'static str] {
                &[$($required)?]
            }
        }
    )*};
}
pub(super) use tables;

/// Returns the key of a struct field: the field `prompt_file` has the key `prompt-file` in the file.
pub(super) fn key_name(field: &str) -> String {
    field.replace('_', "-")
}

/// Adds an entry to a JSON Schema.
pub(super) fn with_copied_member(mut schema: Value, key: &str, what: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(key.to_owned(), what.into());
    }
    schema
}

/// Joins the lines of a doc comment into one line.
pub(super) fn doc_text(comment: &[&str]) -> String {
    comment.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Implements [`TomlValue`] for enums with a fixed set of keywords.
macro_rules! keywords {
    ($($what:literal $name:ty { $($word:literal => $value:expr,)* })*) => {$(
        impl TomlValue for $name {
            fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
                let span = value.span();
                let word = String::read(value, mistakes)?;
                match word.as_str() {
                    $($word => Some($value),)*
                    _ => {
                        let message = format!(concat!($what, " cannot be {:?}"), word);
                        mistakes.unknown(&span, message, &word, [$($word),*]);
                        None
                    }
                }
            }

            fn schema() -> Value {
                json!({ "enum": [$($word),*] })
            }
        }
    )*};
}
pub(super) use keywords;
