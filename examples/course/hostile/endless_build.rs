// failed: it does not compile: the build did not end in
fn harm() {}

#[allow(long_running_const_eval)]
const _: () = loop {};
