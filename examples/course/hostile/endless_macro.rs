// failed: it does not compile: src/lab.rs:
fn harm() {
    macro_rules! more {
        ($($any:tt)*) => { more!($($any)* x) };
    }
    more!();
}
