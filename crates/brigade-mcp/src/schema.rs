//! JSON Schemas as short as they can be: a model pays for every byte of them, in every turn.

use std::sync::Arc;

use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema of what a tool takes. Its fields' comments are the model's explanations.
pub(super) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    Arc::new(schema::<T>(Comments::Kept))
}

/// The schema of what a tool gives, one level deep: a model sees what it is given. What is always
/// there, `success` and `message`, is required, so that a refusal obeys it, too.
pub(super) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = schema::<T>(Comments::Dropped);
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter_map(Value::as_object_mut) {
            field.retain(|key, _| key == "type");
        }
    }
    schema.insert("required".into(), json!(["success", "message"]));
    Arc::new(schema)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comments {
    Kept,
    Dropped,
}

fn schema<T: JsonSchema>(comments: Comments) -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    shorten(&mut schema, comments);
    match schema {
        Value::Object(mut object) => {
            // The comment on the type is for those who read the code.
            object.remove("description");
            // OpenAI's readers want them to be there.
            object.entry("properties").or_insert_with(|| json!({}));
            object
        }
        _ => JsonObject::new(),
    }
}

/// Takes out what no client needs. That an optional field may also be `null` goes without saying,
/// and two of the vendors' schema readers do not understand it said.
fn shorten(schema: &mut Value, comments: Comments) {
    let Value::Object(object) = schema else { return };
    for key in ["title", "format", "default", "minimum", "maximum", "additionalProperties"] {
        object.remove(key);
    }
    if comments == Comments::Dropped {
        object.remove("description");
        object.remove("required");
    }
    if let Some(Value::Array(choices)) = object.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
    for key in ["properties", "items", "anyOf"] {
        match object.get_mut(key) {
            Some(Value::Object(inner)) if key == "properties" => {
                inner.values_mut().for_each(|inner| shorten(inner, comments));
            }
            Some(Value::Array(inner)) => {
                inner.iter_mut().for_each(|inner| shorten(inner, comments));
            }
            Some(inner) => shorten(inner, comments),
            None => {}
        }
    }
}
