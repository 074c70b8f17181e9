//! Words that decide only where nothing clearer stands beside them.
use super::super::{Kind, scan::Group};

/// Why a call was refused, by kind.
pub(super) const VAGUE: &[Group] = &[
    (
        Kind::InvalidInput,
        "ambiguous | are required | arrayindexoutofboundsexception | assertionerror
         attributeerror | bad request | badly formatted | can't be used | cannot be used
         cannot convert | cannot deserialize | cannot parse | compilation failed
         compile error | could not convert | could not parse | did not match | didn't match
         directory not empty | does not apply | does not match | escapes | exceeds
         failed to parse | file name too long | format error | illegal | incompatible types
         incorrect format | indexerror | invalid | invalidargumentexception | is a directory
         is corrupt | is corrupted | is incorrect | is not a | is not an | is not defined
         is not iterable | is required | is wrong | isn't valid | jsondecodeerror | keyerror
         malformed | misformatted | mismatched types | must be | no rule to make target
         no such property | not a directory | not recognized | not supported for argument
         not valid | not visible | nullpointerexception | out of bounds | out of range
         outside the workspace | parse error | parsing error | should be | syntax error
         type mismatch | unable to parse | unbalanced | unbound variable | undeclared
         undefined variable | unexpected character | unexpected end of json input
         unexpected identifier | unexpected input | unexpected token | unprocessable
         unrecognized | unresolved reference | unterminated | value too | valueerror
         wrong format | zerodivisionerror",
    ),
    (
        Kind::AuthFailed,
        "2fa required | bad password | credentials | has expired | must be authenticated
         unauthorised",
    ),
    (
        Kind::PermissionDenied,
        "archived so is read only | declined | denied | disallowed | forbidden
         lacks permission | no access to | not a member | not accessible | not allowed
         not authorized | unauthorized access",
    ),
    (
        Kind::NotFound,
        "can't find | cannot find | cannot locate | could not be found | could not find
         could not locate | couldn't find | did not match any | didn't match any | do not exist
         does not exist | doesn't exist | has been deleted | missing file | no longer exists
         no match | no matching | no results | no such | non existent | nonexistent
         not available on | not found | nothing found | unable to find | unable to locate
         unknown channel | unknown file | unknown host key | unknown id | unknown message
         unknown user",
    ),
    (
        Kind::AlreadyExists,
        "already been taken | already been used | already booked | already exist
         already exists | already registered | already reserved | already taken | duplicate
         file exists | has already been | in use | is taken",
    ),
    (
        Kind::TooLarge,
        "exceeds max | exceeds maximum | exceeds the limit | exceeds the maximum
         length exceeded | maximum number of | size exceeded | size limit exceeded | too big
         too large",
    ),
    (
        Kind::Unsupported,
        "is not enabled | method not found | no longer supported | no such method
         not available in your | not implemented | not support | not supported | unimplemented
         unknown method | unsupported",
    ),
    (
        Kind::PreconditionFailed,
        "cannot be deleted | cannot be modified | has been disabled | is disabled | must first
         not configured | not installed | precondition failed",
    ),
];

/// Enough for a verdict, never for a claim that the tool did not run; by kind.
pub(super) const HINTS: &[Group] = &[
    (Kind::Timeout, "timeout | timeouts"),
    (Kind::RateLimited, "rate limit | rate limiting | rate limits | ratelimit"),
    (Kind::Overloaded, "overload"),
    (Kind::NetworkError, "connection issue | connectivity"),
    (
        Kind::Busy,
        "busy | retry after | retry in | temporarily | temporary | transient | try again
         unavailable",
    ),
];
