// failed: line #
fn harm() {
    panic!("on purpose");
}
