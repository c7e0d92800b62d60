//! Nothing: the tests are all there is. Run them with `cargo test -p trapline-differential`.
