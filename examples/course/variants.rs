//! The programs of the labs, for the tests: `course_variants LAB VARIANT SEED` runs the solution,
//! the skeleton, or another solution of a lab, right or wrong, in the scenario of that seed.

#![allow(clippy::duplicate_mod, reason = "each variant has what is given")]

use std::env;
use std::process::ExitCode;

/// The program of a lab; it takes the seed of a scenario.
type Main = fn(u64);

/// One module for each file that a student could have written.
macro_rules! module {
    ($name:ident $folder:literal answer) => {};
    ($name:ident $folder:literal patched) => {};
    ($name:ident $folder:literal program $(, $more:ident $file:literal)*) => {
        module! { @variants $name $folder {} {}, $($more $file,)* }
    };
    ($name:ident $folder:literal $kernel:literal $(, $more:ident $file:literal)*) => {
        module! {
            @variants $name $folder
            { #[path = $kernel] mod kernel; } { use super::kernel; }, $($more $file,)*
        }
    };
    (@variants $name:ident $folder:literal $kernel:tt $used:tt, $($more:ident $file:literal,)*) => {
        module! {
            @modules $name $folder $kernel $used
            solution "solution.rs", skeleton "skeleton.rs",
            wrong_1 "wrong_1.rs", wrong_2 "wrong_2.rs", wrong_3 "wrong_3.rs", $($more $file,)*
        }
    };
    (
        @modules $name:ident $folder:literal { $($kernel:tt)* } $used:tt
        $($variant:ident $file:literal,)*
    ) => {
        #[path = $folder]
        #[allow(dead_code, unused_imports, reason = "each lab uses a part of the kernel")]
        mod $name {
            use course::checks::$name::scenario;
            $($kernel)*
            $(module! { @variant $variant $file $used })*

            pub const ALL: &[(&str, crate::Main)] =
                &[$((stringify!($variant), $variant::given::main)),*];
        }
    };
    (@variant $variant:ident $file:literal { $($used:tt)* }) => {
        #[path = ""]
        pub mod $variant {
            $($used)*
            use super::scenario;
            pub mod given;
            #[path = $file]
            pub mod lab;
        }
    };
}

course::each_lab!(module);

fn find(lab: &str, variant: &str) -> Option<Main> {
    let name = format!("lab_{lab:0>2}");
    macro_rules! of {
        ($name:ident $folder:literal answer) => {};
        ($name:ident $folder:literal patched) => {};
        ($name:ident $($rest:tt)*) => {
            if name == stringify!($name) {
                return $name::ALL.iter().find(|(each, _)| *each == variant).map(|(_, main)| *main);
            }
        };
    }
    course::each_lab!(of);
    None
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let found = match &args[..] {
        [lab, variant, seed] => find(lab, variant).zip(seed.parse().ok()),
        _ => None,
    };
    match found {
        Some((main, seed)) => main(seed),
        None => {
            eprintln!("course_variants: expected LAB VARIANT SEED, such as 16 wrong_1 0");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
