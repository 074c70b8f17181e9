//! SQLSTATE codes, as PostgreSQL and others report them.
use super::Kind;

/// What a code of five characters means: by itself, else by its class.
pub(super) fn kind(code: &str) -> Option<Kind> {
    let is_code = code.len() == 5
        && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if !is_code {
        return None;
    }
    Some(match code {
        "40001" | "40P01" => Kind::Conflict,
        "55P03" | "53300" | "57P03" => Kind::Busy,
        "57014" => Kind::Timeout,
        "57P01" | "57P02" => Kind::ConnectionReset,
        "23505" => Kind::AlreadyExists,
        "42501" => Kind::PermissionDenied,
        "42P01" | "42703" | "3D000" => Kind::NotFound,
        "53100" => Kind::NoSpace,
        _ => match &code[..2] {
            "08" => Kind::NetworkError,
            "22" | "23" | "42" => Kind::InvalidInput,
            "28" => Kind::AuthFailed,
            "40" => Kind::Conflict,
            "53" => Kind::Busy,
            "0A" => Kind::Unsupported,
            _ => return None,
        },
    })
}
