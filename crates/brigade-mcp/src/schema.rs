//! Generates short JSON Schemas, because the schemas are part of the model's input in every turn.

use std::sync::Arc;

use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Returns the schema of a tool's arguments. Doc comments on the fields become descriptions for the model.
pub(super) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    Arc::new(schema::<T>(Descriptions::Kept))
}

/// Returns the schema of a tool's result, one level deep. Only `success` and `message` are required, so that an
/// error matches the schema, too.
pub(super) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = schema::<T>(Descriptions::Dropped);
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter_map(Value::as_object_mut) {
            field.retain(|key, _| key == "type");
        }
    }
    schema.insert("required".into(), json!(["success", "message"]));
    Arc::new(schema)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Descriptions {
    Kept,
    Dropped,
}

fn schema<T: JsonSchema>(descriptions: Descriptions) -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    shorten(&mut schema, descriptions);
    match schema {
        Value::Object(mut object) => {
            // Remove the doc comment of the Rust type, because it is not meant for the model.
            object.remove("description");
            // OpenAI requires `properties`, even if there are none.
            object.entry("properties").or_insert_with(|| json!({}));
            object
        }
        _ => JsonObject::new(),
    }
}

/// Removes the parts of a schema that no client needs. Also removes the type `null` from optional fields, because
/// two vendors reject schemas with nullable fields.
fn shorten(schema: &mut Value, descriptions: Descriptions) {
    let Value::Object(object) = schema else { return };
    for key in ["title", "format", "default", "minimum", "maximum", "additionalProperties"] {
        object.remove(key);
    }
    if descriptions == Descriptions::Dropped {
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
                inner.values_mut().for_each(|inner| shorten(inner, descriptions));
            }
            Some(Value::Array(inner)) => {
                inner.iter_mut().for_each(|inner| shorten(inner, descriptions));
            }
            Some(inner) => shorten(inner, descriptions),
            None => {}
        }
    }
}
