// failed: it does not compile: src/lab.rs: error: recursion limit reached
fn harm() {
    macro_rules! more {
        ($($any:tt)*) => { more!($($any)* x) };
    }
    more!();
}
