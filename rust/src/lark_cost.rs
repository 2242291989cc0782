//! What a Lark grammar may ask for: `&` joins expressions, and every one of them may double the
//! automaton, without a limit of the library's own (see json_schema.rs).

use serde_json::Value;

use crate::abi::{Failure, Outcome};
use crate::json_schema;

const JOINS_MAX: usize = 12;

/// Counts what stands outside texts, regular expressions and comments; none of these spans lines.
pub fn check(lark: &str) -> Outcome<()> {
    let mut joins = 0;
    for line in lark.lines() {
        joins += count_joins(line);
    }
    if joins > JOINS_MAX {
        let message = format!("grammar: {joins} times &, at most {JOINS_MAX} are allowed");
        return Err(Failure::invalid(message));
    }
    for (at, keyword) in lark.match_indices("%json") {
        let text = &lark[at + keyword.len()..];
        let schema = serde_json::Deserializer::from_str(text).into_iter::<Value>().next();
        if let Some(Ok(Value::Object(schema))) = schema {
            json_schema::check_cost(&schema)?;
        }
    }
    Ok(())
}

fn count_joins(line: &str) -> usize {
    let mut joins = 0;
    let mut rest = line;
    while let Some(at) = rest.find(['"', '/', '&']) {
        let mark = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match mark {
            b'&' => joins += 1,
            b'/' if rest.starts_with('/') => return joins, // a comment
            _ => rest = after_closing(rest, mark),
        }
    }
    joins
}

/// What stands behind the next `mark` that is not escaped; nothing if there is none.
fn after_closing(text: &str, mark: u8) -> &str {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if byte == mark && !escaped {
            return &text[at + 1..];
        }
        escaped = byte == b'\\' && !escaped;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_counted_where_they_are() {
        assert_eq!(count_joins(r#"a: /x&\/&/ & "&\"&" & b // & c"#), 2);
        let joined = |count: usize| format!("start: A\nA: {}/z/", "/x/ & ".repeat(count));
        assert!(check(&joined(12)).is_ok());
        assert!(check(&joined(13)).is_err());
        assert!(check(&format!("start: \"{}\"", "&".repeat(100))).is_ok());
        let patterns = r#"{"pattern": "a"},"#.repeat(13);
        assert!(check(&format!(r#"start: %json {{"allOf": [{patterns} {{}}]}}"#)).is_err());
        assert!(check(r#"start: %json {"type": "object"} "a""#).is_ok());
        assert!(check("start: \"unclosed").is_ok());
    }
}
