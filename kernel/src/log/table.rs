//! The macro behind the tables of `event.rs` and `op.rs`. A table is the one place that says what
//! an event or an operation looks like: its type and its text are made from it.

/// Defines enums whose values are printed as a word and then fields. A row is
///
/// ```text
/// Variant = "word" { field " before=": Type = form, ... }
/// Variant(name " before=": Type = form) = "word"
/// ```
///
/// The second is for a tuple. Everything behind the first word may be missing. `" before="` is what
/// is printed before the field: a space if it is missing. `form` says how the field is written: by
/// the own form of its type if it is missing. A form may use the fields before it.
///
/// Behind the name of an enum stand the method that gives the word, and the width of its column if
/// it has one. A module with a table imports all names of `form.rs`.
macro_rules! table {
    ($($(#[$meta:meta])* pub enum $name:ident $(<$a:lifetime>)?,
    $getter:ident $(, width $width:literal)? {
        $($(#[$doc:meta])* $variant:ident
        $(($inner:ident $($prefix:literal)?: $payload:ty $(= $shape:expr)?))? = $word:literal $({
            $($(#[$note:meta])* $field:ident $($before:literal)?: $type:ty $(= $form:expr)?),* $(,)?
        })?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name $(<$a>)? {
            $($(#[$doc])* $variant $(($payload))? $({
                $($(#[$note])*
                #[doc = given!("Positional." $(, concat!("Behind `", $before, "`."))?)]
                $field: $type),*
            })?),*
        }

        impl $(<$a>)? $name $(<$a>)? {
            /// The first word of each variant, empty if it has none.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Its first word, if it has one.
            #[must_use]
            pub fn $getter(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $word),*
                }
            }
        }

        impl $(<$a>)? Form<$name $(<$a>)?> for Own {
            fn put(&self, before: &str, value: &$name $(<$a>)?, out: &mut Out) {
                out.text(before);
                out.column(value.$getter(), 0 $(+ $width)?);
                match value {
                    $($name::$variant { $(0: $inner)? $($($field),*)? } => {
                        $(given!(Own $(, $shape)?).put(given!(" " $(, $prefix)?), $inner, out);)?
                        $($(given!(Own $(, $form)?).put(given!(" " $(, $before)?), $field, out);)*)?
                    })*
                }
            }
        }
        display!($name $(<$a>)?);
    )*};
}
pub(super) use table;

/// The given value, or else the default.
macro_rules! given {
    ($default:expr) => {
        $default
    };
    ($default:expr, $given:expr) => {
        $given
    };
}
pub(super) use given;

/// Shows a type by its own form.
macro_rules! display {
    ($name:ident $(<$a:lifetime>)?) => {
        impl $(<$a>)? fmt::Display for $name $(<$a>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = Out::default();
                Own.put("", self, &mut out);
                f.pad(&String::from_utf8_lossy(&out.0))
            }
        }
    };
}
pub(super) use display;
