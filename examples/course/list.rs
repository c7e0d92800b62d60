//! The labs of the course, for the compiler: one line for each folder of `labs/`.
//!
//! A line is `name "folder" kind`, where the kind is `program`, `answer`, `patched`, or the file
//! of the kernel of a step, seen from the folder of the lab: `"../../step_04/kernel/mod.rs"`. More
//! than three wrong solutions follow as `, wrong_4 "wrong_4.rs"`.

macro_rules! labs {
    ($each:ident) => {
        $each! {
            lab_09 "labs/09_transfer" "../../step_09/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs"
        }
        $each! {
            lab_10 "labs/10_oneshot" "../../step_10/kernel/mod.rs", wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs"
        }
        $each! {
            lab_11 "labs/11_phases" "../../step_11/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs"
        }
        $each! {
            lab_12 "labs/12_drain" "../../step_12/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs"
        }
        $each! { lab_13 "labs/13_predict" answer }
        $each! { lab_16 "labs/16_fair" program, wrong_4 "wrong_4.rs" }
    };
}

pub(crate) use labs;
