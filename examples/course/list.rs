//! The labs of the course, for the compiler: one line for each folder of `labs/`.
//!
//! A line is `name "folder" kind`, where the kind is `program`, `answer`, `patched`, or the file
//! of the kernel of a step, seen from the folder of the lab: `"../../step_04/kernel/mod.rs"`. More
//! than three wrong solutions follow as `, wrong_4 "wrong_4.rs"`, and further right ones as
//! `, right_1 "right_1.rs"`.

#[macro_export]
macro_rules! each_lab {
    ($each:ident) => {
        $each! {
            lab_01 "labs/01_turns" "../../step_01/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_02 "labs/02_timers" "../../step_02/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", wrong_19 "wrong_19.rs",
            wrong_20 "wrong_20.rs", wrong_21 "wrong_21.rs", wrong_22 "wrong_22.rs",
            right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_03 "labs/03_clock" "../../step_03/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", wrong_19 "wrong_19.rs",
            wrong_20 "wrong_20.rs", right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_04 "labs/04_every" "../../step_04/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", wrong_19 "wrong_19.rs",
            wrong_20 "wrong_20.rs", wrong_21 "wrong_21.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_05 "labs/05_together" "../../step_05/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_06 "labs/06_why" "../../step_06/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_07 "labs/07_pieces" "../../step_07/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_08 "labs/08_attempts" "../../step_08/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_09 "labs/09_transfer" "../../step_09/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", wrong_19 "wrong_19.rs",
            wrong_20 "wrong_20.rs", wrong_21 "wrong_21.rs", wrong_22 "wrong_22.rs",
            right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_10 "labs/10_oneshot" "../../step_10/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_11 "labs/11_phases" "../../step_11/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs", wrong_16 "wrong_16.rs",
            wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs", wrong_19 "wrong_19.rs",
            wrong_20 "wrong_20.rs", wrong_21 "wrong_21.rs", wrong_22 "wrong_22.rs",
            wrong_23 "wrong_23.rs", right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_12 "labs/12_drain" "../../step_11/kernel/mod.rs",
            wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs", wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs",
            wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs", wrong_10 "wrong_10.rs",
            wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs", wrong_13 "wrong_13.rs",
            wrong_14 "wrong_14.rs", right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! { lab_13 "labs/13_predict" answer }
        $each! { lab_14 "labs/14_order" answer }
        $each! { lab_15 "labs/15_blocked" answer }
        $each! {
            lab_16 "labs/16_fair" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs",
            wrong_19 "wrong_19.rs", wrong_20 "wrong_20.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! { lab_17 "labs/17_kinds" answer }
        $each! {
            lab_18 "labs/18_race" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_19 "labs/19_outlive" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs",
            right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_20 "labs/20_slow_loris" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs",
            wrong_19 "wrong_19.rs", wrong_20 "wrong_20.rs", wrong_21 "wrong_21.rs",
            wrong_22 "wrong_22.rs", wrong_23 "wrong_23.rs", wrong_24 "wrong_24.rs",
            wrong_25 "wrong_25.rs", wrong_26 "wrong_26.rs", right_1 "right_1.rs",
            right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_21 "labs/21_drain" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs",
            wrong_19 "wrong_19.rs", wrong_20 "wrong_20.rs", wrong_21 "wrong_21.rs",
            wrong_22 "wrong_22.rs", wrong_23 "wrong_23.rs", wrong_24 "wrong_24.rs",
            wrong_25 "wrong_25.rs", right_1 "right_1.rs", right_2 "right_2.rs", right_3 "right_3.rs"
        }
        $each! {
            lab_22 "labs/22_determinism" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs",
            wrong_19 "wrong_19.rs", wrong_20 "wrong_20.rs", right_1 "right_1.rs",
            right_2 "right_2.rs"
        }
        $each! { lab_23 "labs/23_trap" patched }
        $each! { lab_24 "labs/24_policy" patched }
        $each! {
            lab_25 "labs/25_lost_wake" program, wrong_4 "wrong_4.rs", wrong_5 "wrong_5.rs",
            wrong_6 "wrong_6.rs", wrong_7 "wrong_7.rs", wrong_8 "wrong_8.rs", wrong_9 "wrong_9.rs",
            wrong_10 "wrong_10.rs", wrong_11 "wrong_11.rs", wrong_12 "wrong_12.rs",
            wrong_13 "wrong_13.rs", wrong_14 "wrong_14.rs", wrong_15 "wrong_15.rs",
            wrong_16 "wrong_16.rs", wrong_17 "wrong_17.rs", wrong_18 "wrong_18.rs",
            right_1 "right_1.rs", right_2 "right_2.rs"
        }
    };
}
