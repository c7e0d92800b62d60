//! The labs of the course, for the compiler: one line for each folder of `labs/`.
//!
//! A line is `name "folder" kind`, where the kind is `program`, `answer`, `patched`, or the file
//! of the kernel of a step, seen from the folder of the lab: `"../../step_04/kernel/mod.rs"`. More
//! than three wrong solutions follow as `, wrong_4 "wrong_4.rs"`.

macro_rules! labs {
    ($each:ident) => {
        $each! { lab_13 "labs/13_predict" answer }
        $each! { lab_14 "labs/14_order" answer }
        $each! { lab_15 "labs/15_blocked" answer }
        $each! { lab_16 "labs/16_fair" program, wrong_4 "wrong_4.rs" }
        $each! { lab_17 "labs/17_kinds" answer }
        $each! {
            lab_18 "labs/18_race" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs"
        }
        $each! {
            lab_19 "labs/19_outlive" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs"
        }
        $each! { lab_22 "labs/22_determinism" program, wrong_4 "wrong_4.rs" }
        $each! { lab_23 "labs/23_trap" patched }
        $each! { lab_25 "labs/25_lost_wake" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs" }
    };
}

pub(crate) use labs;
