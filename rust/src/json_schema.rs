//! JSON Schemas on their way to a grammar: whitespace with an end, and errors that say where.

use serde_json::{json, Map, Value};

use crate::abi::{shorten, Failure, Outcome};

/// Between two tokens of the JSON text: one blank, or a new line with its indentation. Without a bound a
/// model that is unsure can go on with blanks for ever.
const WHITESPACE: &str = r"[ \t]|\n[ \t]{0,32}";

/// Keywords whose value is a schema, a list of schemas or a map of schemas.
const SCHEMA: [&str; 10] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
];
const SCHEMA_LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const SCHEMA_MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// The schema as the grammar library takes it.
pub fn parse(text: &str) -> Outcome<Value> {
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| Failure::invalid(format!("JSON Schema: {error}")))?;
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(true) => Map::new(),
        Value::Bool(false) => {
            return Err(Failure::invalid("JSON Schema: false, which no value satisfies"));
        }
        _ => return Err(Failure::invalid("JSON Schema: want an object")),
    };
    check_cost(&schema)?;
    // The library's own options are not for clients.
    schema.insert("x-guidance".to_string(), json!({ "whitespace_pattern": WHITESPACE }));
    Ok(Value::Object(schema))
}

/// Names of one object: the library takes time in the square of them.
const NAMES_MAX: usize = 1024;
/// Patterns that have to hold at once double the automaton with each of them, and the library asks no
/// limit before it has built it: sixteen take seconds, forty all memory.
const JOINED_PATTERNS_MAX: usize = 12;
const JOINED_NAMES_MAX: usize = 4096;

/// What makes a schema dear, over all of it.
#[derive(Default)]
struct Cost {
    patterns: usize,
    names: usize,
    names_of_one: usize,
    joins: bool, // several schemas for one value
}

/// Refuses what would take the library all time or memory.
pub fn check_cost(schema: &Map<String, Value>) -> Outcome<()> {
    let mut cost = Cost::default();
    add_cost(schema, &mut cost);
    let refuse = |what: String| Err(Failure::invalid(format!("JSON Schema: {what}")));
    if cost.names_of_one > NAMES_MAX {
        let count = cost.names_of_one;
        return refuse(format!("an object has {count} names, at most {NAMES_MAX} are allowed"));
    }
    if cost.joins && (cost.patterns > JOINED_PATTERNS_MAX || cost.names > JOINED_NAMES_MAX) {
        return refuse(format!(
            "{} patterns and formats, {} names: where allOf, or keywords beside $ref, anyOf and oneOf \
             join schemas, at most {JOINED_PATTERNS_MAX} and {JOINED_NAMES_MAX} are allowed",
            cost.patterns, cost.names
        ));
    }
    Ok(())
}

fn add_cost(schema: &Map<String, Value>, cost: &mut Cost) {
    let has = |keyword: &str| schema.contains_key(keyword);
    let size = |keyword: &str| match schema.get(keyword) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    };
    let patterns = usize::from(has("pattern")) + usize::from(has("format"));
    let names = size("properties") + size("required");
    cost.patterns += patterns + size("patternProperties") + usize::from(has("propertyNames"));
    cost.names += names;
    cost.names_of_one = cost.names_of_one.max(names);
    let content = patterns > 0 || ["properties", "items", "prefixItems"].into_iter().any(has);
    let choice = has("anyOf") || has("oneOf");
    cost.joins |= size("allOf") > 1
        || has("allOf") && (content || choice || has("$ref"))
        || has("$ref") && (content || choice)
        || has("anyOf") && has("oneOf")
        || choice && content && branches(schema).any(joins_more);
    for_each_inner(schema, &mut |inner| add_cost(inner, cost));
}

fn branches(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten()
}

fn joins_more(branch: &Value) -> bool {
    ["allOf", "anyOf", "oneOf", "$ref"].into_iter().any(|keyword| branch.get(keyword).is_some())
}

/// Every schema directly inside this one.
fn for_each_inner(schema: &Map<String, Value>, visit: &mut dyn FnMut(&Map<String, Value>)) {
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        match value {
            Value::Array(list) if SCHEMA_LISTS.contains(&keyword) => {
                list.iter().filter_map(Value::as_object).for_each(&mut *visit);
            }
            Value::Object(map) if SCHEMA_MAPS.contains(&keyword) => {
                map.values().filter_map(Value::as_object).for_each(&mut *visit);
            }
            Value::Object(inner) if SCHEMA.contains(&keyword) => visit(inner),
            _ => {}
        }
    }
}

/// What the library says, with the place in the schema when it is about a keyword.
pub fn refused(schema: &Value, error: &anyhow::Error) -> Failure {
    let message = format!("{error:#}");
    let place = find(schema, "#", &|keyword, value| is_refused(&message, keyword, value));
    let failure = match place {
        Some(place) => format!("JSON Schema: {place} is not supported: {message}"),
        None => format!("JSON Schema: {message}"),
    };
    Failure::invalid(shorten(&failure))
}

/// Whether the message is about this keyword with this value.
fn is_refused(message: &str, keyword: &str, value: &Value) -> bool {
    let text = || value.as_str().unwrap_or_default();
    match keyword {
        "oneOf" => message.contains("oneOf constraints are not supported"),
        "format" => message.contains(&format!("Unknown format: {}", text())),
        "type" => message.contains(&format!("Invalid type: {}", text())) && !text().is_empty(),
        "$ref" => message.contains(&format!("'{}'", text())) && !text().is_empty(),
        "minProperties" | "maxProperties" => message.contains("min/maxProperties"),
        _ => {
            message.contains("Unimplemented keys") && message.contains(&format!("\"{keyword}\""))
        }
    }
}

/// The path of the first keyword that `is_it`, in the order of the text.
fn find(schema: &Value, path: &str, is_it: &dyn Fn(&str, &Value) -> bool) -> Option<String> {
    for (keyword, value) in schema.as_object()? {
        let here = format!("{path}/{keyword}");
        if is_it(keyword, value) {
            return Some(here);
        }
        let found = if SCHEMA_MAPS.contains(&keyword.as_str()) && value.is_object() {
            let entries = value.as_object().into_iter().flatten();
            entries.into_iter().find_map(|(name, inner)| {
                find(inner, &format!("{here}/{name}"), is_it)
            })
        } else if SCHEMA_LISTS.contains(&keyword.as_str()) && value.is_array() {
            let entries = value.as_array().into_iter().flatten().enumerate();
            entries.into_iter().find_map(|(at, inner)| find(inner, &format!("{here}/{at}"), is_it))
        } else if SCHEMA.contains(&keyword.as_str()) {
            find(value, &here, is_it)
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(schema: Value, message: &str) -> String {
        refused(&schema, &anyhow::anyhow!("{message}")).message
    }

    #[test]
    fn errors_say_where() {
        let schema = json!({"properties": {"not": {"type": "string"}, "a": {
            "anyOf": [{"type": "null"}, {"items": {"not": {}}}]}}});
        let message = place(schema, "Unimplemented keys: [\"not\"]");
        assert!(message.contains("#/properties/a/anyOf/1/items/not is not supported"), "{message}");
        let schema = json!({"$defs": {"x": {"format": "date"}, "y": {"format": "colour"}}});
        let message = place(schema, "Unknown format: colour");
        assert!(message.contains("#/$defs/y/format"), "{message}");
        let message = place(json!({"enum": [{"not": 1}]}), "Unimplemented keys: [\"not\"]");
        assert_eq!(message, "JSON Schema: Unimplemented keys: [\"not\"]");
    }

    #[test]
    fn what_would_take_all_time_or_memory_is_refused() {
        let refusal = |schema: Value| parse(&schema.to_string()).err().map(|failure| failure.message);
        let patterns = |count: usize| -> Vec<Value> {
            (0..count).map(|i| json!({"type": "string", "pattern": format!("(a|b)*c{{{i}}}")})).collect()
        };
        assert_eq!(refusal(json!({"allOf": patterns(12)})), None);
        assert!(refusal(json!({"allOf": patterns(13)})).unwrap().contains("13 patterns"));
        assert_eq!(refusal(json!({"anyOf": patterns(100)})), None, "one of them holds");
        let mut chained = json!({"type": "string"});
        let mut nested = json!({"type": "string"});
        for i in 0..13 {
            chained = json!({"pattern": format!("a{i}"), "allOf": [chained]});
            nested = json!({"pattern": format!("a{i}"), "anyOf": [nested]});
        }
        assert!(refusal(chained).is_some());
        assert!(refusal(nested).is_some());
        let mut defs = Map::new();
        for i in 0..13 {
            defs.insert(format!("d{i}"), json!({"pattern": "a", "$ref": format!("#/$defs/d{}", i + 1)}));
        }
        assert!(refusal(json!({"$defs": defs, "$ref": "#/$defs/d0"})).is_some());

        let names = |count: usize| (0..count).map(|i| json!(format!("p{i}"))).collect::<Vec<_>>();
        assert_eq!(refusal(json!({"required": names(1024)})), None);
        assert!(refusal(json!({"required": names(1025)})).unwrap().contains("1025 names"));
        let objects: Vec<Value> = (0..5).map(|_| json!({"required": names(1000)})).collect();
        assert!(refusal(json!({"allOf": objects})).is_some());
        assert_eq!(refusal(json!({"anyOf": objects})), None);
    }

    #[test]
    fn clients_cannot_set_options_of_the_library() {
        let schema = parse(r#"{"x-guidance": {"lenient": true}}"#).unwrap();
        assert_eq!(schema["x-guidance"], json!({ "whitespace_pattern": WHITESPACE }));
        assert!(parse("false").is_err() && parse("1").is_err() && parse("[]").is_err());
        assert!(parse("true").is_ok());
    }
}
