//! The judgement of each lab: its `check.rs`.

use crate::each_lab;
use crate::work::Work;

/// The check of a lab, and what it shares with the program: the scenario, or the program that an
/// answer is about.
macro_rules! module {
    (@with $name:ident $folder:literal { $($shared:tt)* }) => {
        #[path = $folder]
        pub mod $name {
            pub mod check;
            $($shared)*
        }
    };
    ($name:ident $folder:literal answer) => {
        module! { @with $name $folder { pub mod given { pub mod program; } } }
    };
    ($name:ident $folder:literal patched) => {
        module! { @with $name $folder {} }
    };
    ($name:ident $folder:literal $($rest:tt)*) => {
        module! { @with $name $folder { pub mod scenario; } }
    };
}

each_lab!(module);

/// Returns the judgement of the lab with that number; `None` if the list does not name the lab.
pub fn check(number: u32, work: &Work) -> Option<Result<(), String>> {
    let name = format!("lab_{number:02}");
    macro_rules! call {
        ($name:ident $($rest:tt)*) => {
            if name == stringify!($name) {
                return Some($name::check::check(work));
            }
        };
    }
    each_lab!(call);
    None
}
