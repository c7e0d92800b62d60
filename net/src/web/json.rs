//! Writing JSON. There is no parser here.
//!
//! Each value is appended to one string at once; no tree of values is kept.

use std::fmt::Write;

use crate::http::Response;

/// A value that can be written as JSON.
pub trait ToJson {
    /// Appends the JSON text of the value to `out`.
    fn write_json(&self, out: &mut String);
}

impl Response {
    /// Makes a response with status 200 and a JSON value as its body.
    pub fn json(value: impl ToJson) -> Response {
        Response::new(200).with_json(value)
    }

    /// Sets the body to a JSON value. The media type is `application/json`, unless a field sets
    /// another one.
    pub fn with_json(self, value: impl ToJson) -> Response {
        let mut text = String::new();
        value.write_json(&mut text);
        self.with_json_text(text)
    }
}

/// A JSON object, written field by field, in the order of the calls. If a name is added twice, the
/// object contains it twice.
///
/// ```
/// use net::web::Object;
///
/// let inner = Object::new().field("held", 3_u64);
/// let task = Object::new().field("name", "a \"b\"").field("gate", inner);
/// let text = task.field("next", None::<u64>).text();
/// assert_eq!(text, r#"{"name":"a \"b\"","gate":{"held":3},"next":null}"#);
/// ```
#[derive(Clone, Debug)]
#[must_use = "an object is sent by putting it into a response"]
pub struct Object {
    /// The text of the object, without the last brace.
    open: String,
}

impl Default for Object {
    fn default() -> Object {
        Object::new()
    }
}

impl Object {
    /// Makes an object without fields.
    pub fn new() -> Object {
        Object { open: "{".to_owned() }
    }

    /// Adds a field.
    pub fn field(mut self, name: &str, value: impl ToJson) -> Object {
        if self.open.len() > 1 {
            self.open.push(',');
        }
        name.write_json(&mut self.open);
        self.open.push(':');
        value.write_json(&mut self.open);
        self
    }

    /// Returns the text of the object.
    #[must_use]
    pub fn text(mut self) -> String {
        self.open.push('}');
        self.open
    }
}

impl ToJson for Object {
    fn write_json(&self, out: &mut String) {
        out.push_str(&self.open);
        out.push('}');
    }
}

impl ToJson for str {
    fn write_json(&self, out: &mut String) {
        out.push('"');
        for char in self.chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                char if u32::from(char) < 0x20 => {
                    write(out, format_args!("\\u{:04x}", char as u32))
                }
                char => out.push(char),
            }
        }
        out.push('"');
    }
}

impl ToJson for String {
    fn write_json(&self, out: &mut String) {
        self.as_str().write_json(out);
    }
}

impl ToJson for bool {
    fn write_json(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

/// Writes infinities and NaN as `null`, because JSON has no numbers for them.
impl ToJson for f64 {
    fn write_json(&self, out: &mut String) {
        match self.is_finite() {
            true => write(out, format_args!("{self}")),
            false => out.push_str("null"),
        }
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {
        $(impl ToJson for $integer {
            fn write_json(&self, out: &mut String) {
                write(out, format_args!("{self}"));
            }
        })*
    };
}
integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

/// Writes `None` as `null`.
impl<T: ToJson> ToJson for Option<T> {
    fn write_json(&self, out: &mut String) {
        match self {
            Some(value) => value.write_json(out),
            None => out.push_str("null"),
        }
    }
}

impl<T: ToJson> ToJson for [T] {
    fn write_json(&self, out: &mut String) {
        out.push('[');
        for (place, value) in self.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            value.write_json(out);
        }
        out.push(']');
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, out: &mut String) {
        self.as_slice().write_json(out);
    }
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write_json(&self, out: &mut String) {
        (**self).write_json(out);
    }
}

fn write(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a string takes all that is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl ToJson) -> String {
        let mut out = String::new();
        value.write_json(&mut out);
        out
    }

    #[test]
    fn each_value_is_written_as_json_has_it() {
        assert_eq!(text("a\"\\\n\r\t\u{1}\u{7f}\u{e9}\u{1f600}"), {
            "\"a\\\"\\\\\\n\\r\\t\\u0001\u{7f}\u{e9}\u{1f600}\""
        });
        assert_eq!(text(vec![1, -2, 3]), "[1,-2,3]");
        assert_eq!(text(vec![true, false]), "[true,false]");
        assert_eq!(text(Vec::<u8>::new()), "[]");
        assert_eq!(text(u64::MAX), "18446744073709551615");
        assert_eq!(
            (text(0.5), text(-2.0), text(f64::NAN)),
            ("0.5".into(), "-2".into(), "null".into())
        );
        assert_eq!(text(Some("x")), "\"x\"");
        assert_eq!(text(Object::new()), "{}");
        assert_eq!(text(Object::new().field("a\n", 1).field("b", [1, 2].as_slice())), {
            "{\"a\\n\":1,\"b\":[1,2]}"
        });
    }
}
