//! The judgement of each lab: its `check.rs`.

use crate::list::labs;
use crate::work::Work;

macro_rules! module {
    ($name:ident $folder:literal $($rest:tt)*) => {
        #[path = $folder]
        mod $name {
            pub mod check;
        }
    };
}

labs!(module);

/// The judgement of the lab with that number; `None` if the list does not name the lab.
pub fn check(number: u32, work: &Work) -> Option<Result<(), String>> {
    let name = format!("lab_{number:02}");
    macro_rules! call {
        ($name:ident $($rest:tt)*) => {
            if name == stringify!($name) {
                return Some($name::check::check(work));
            }
        };
    }
    labs!(call);
    None
}
