//! The error numbers that `ErrorKind` cannot tell apart: those of every Linux but MIPS and SPARC.

pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const ENFILE: i32 = 23;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENONET: i32 = 64;
pub(crate) const EPROTO: i32 = 71;
pub(crate) const ENOPROTOOPT: i32 = 92;
pub(crate) const EOPNOTSUPP: i32 = 95;
pub(crate) const ENETDOWN: i32 = 100;
pub(crate) const ENETUNREACH: i32 = 101;
pub(crate) const ECONNABORTED: i32 = 103;
pub(crate) const ENOBUFS: i32 = 105;
pub(crate) const ETIMEDOUT: i32 = 110;
pub(crate) const EHOSTDOWN: i32 = 112;
pub(crate) const EHOSTUNREACH: i32 = 113;
pub(crate) const EINPROGRESS: i32 = 115;
