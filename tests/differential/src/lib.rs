//! Empty, because this package has only tests. Run them with `cargo test -p trapline-differential`.
