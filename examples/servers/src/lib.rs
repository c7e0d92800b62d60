//! The code that the example servers share, in addition to [`common`]: their command line and
//! workers, the flags and messages of HTTP, the access log, and the page about the kernel.

pub mod access;
pub mod http_flags;
pub mod http_lines;
pub mod kernel_page;
pub mod server;
