//! Errors of the operating system.
use super::Kind;
use std::io;

/// What an [`io::ErrorKind`] means; `None` where that says too little.
#[doc(hidden)]
#[must_use]
pub const fn io_kind(kind: io::ErrorKind) -> Option<Kind> {
    use io::ErrorKind as Io;
    Some(match kind {
        Io::ConnectionRefused => Kind::ConnectionRefused,
        Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe | Io::UnexpectedEof => {
            Kind::ConnectionReset
        }
        Io::TimedOut => Kind::NetworkTimeout,
        Io::HostUnreachable
        | Io::NetworkUnreachable
        | Io::NetworkDown
        | Io::NotConnected
        | Io::AddrNotAvailable => Kind::NetworkError,
        Io::WouldBlock
        | Io::ResourceBusy
        | Io::ExecutableFileBusy
        | Io::Deadlock
        | Io::Interrupted
        | Io::StaleNetworkFileHandle
        | Io::OutOfMemory => Kind::Busy,
        Io::NotFound => Kind::NotFound,
        Io::PermissionDenied | Io::ReadOnlyFilesystem => Kind::PermissionDenied,
        Io::AlreadyExists | Io::AddrInUse => Kind::AlreadyExists,
        Io::InvalidInput
        | Io::NotADirectory
        | Io::IsADirectory
        | Io::DirectoryNotEmpty
        | Io::InvalidFilename
        | Io::NotSeekable
        | Io::CrossesDevices => Kind::InvalidInput,
        Io::FileTooLarge | Io::ArgumentListTooLong => Kind::TooLarge,
        Io::StorageFull | Io::QuotaExceeded => Kind::NoSpace,
        Io::Unsupported => Kind::Unsupported,
        _ => return None,
    })
}
