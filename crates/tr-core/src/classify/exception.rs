//! Names of exceptions: Python, JavaScript, Java, and the SDKs of model providers.
use super::{Kind, scan::Group};

/// By kind.
pub(super) const EXCEPTIONS: &[Group] = &[
    (
        Kind::Timeout,
        "apitimeouterror | deadlineexceeded | httptimeoutexception | timeouterror
         timeoutexception | timeoutexpired",
    ),
    (
        Kind::NetworkTimeout,
        "bodytimeouterror | connectiontimeouterror | connecttimeout | connecttimeouterror
         connecttimeoutexception | headerstimeouterror | pooltimeout | readtimeout
         readtimeouterror | readtimeoutexception | servertimeouterror | sockettimeoutexception
         writetimeout",
    ),
    (Kind::RateLimited, "ratelimiterror | toomanyrequestserror"),
    (Kind::Overloaded, "overloadederror"),
    (Kind::ServiceUnavailable, "serviceunavailableerror"),
    (Kind::ConnectionRefused, "connectionrefusederror"),
    (Kind::DnsFailure, "gaierror | nameresolutionerror | unknownhostexception"),
    (
        Kind::ConnectionReset,
        "brokenpipeerror | brokenresourceerror | chunkedencodingerror | closedresourceerror
         connectionabortederror | connectionreseterror | incompleteread | premature_close
         remotedisconnected | remoteprotocolerror | serverdisconnectederror | targetclosederror",
    ),
    (
        Kind::NetworkError,
        "apiconnectionerror | communicationsexception | mongonetworkerror
         mongoserverselectionerror | noroutetohostexception",
    ),
    (Kind::ServerError, "internalservererror"),
    (Kind::Cancelled, "aborterror | cancellationexception | cancellederror"),
    (
        Kind::InvalidInput,
        "badrequesterror | constraintviolationexception | illegalargumentexception
         isadirectoryerror | jsonschemavalidationexception | notadirectoryerror
         requestvalidationerror | syntaxerror | unicodedecodeerror | unprocessableentityerror
         validationerror | zoderror",
    ),
    (Kind::AuthFailed, "authenticationerror | authenticationexception | unauthorizederror"),
    (Kind::PermissionDenied, "permissiondeniederror | permissionerror"),
    (
        Kind::NotFound,
        "filenotfounderror | filenotfoundexception | modulenotfounderror | nosuchfileexception
         notfounderror",
    ),
    (Kind::AlreadyExists, "filealreadyexistsexception | fileexistserror | integrityerror"),
    (Kind::TooLarge, "contextwindowexceedederror | requesttoolargeerror"),
    (Kind::QuotaExhausted, "budgetexceedederror"),
    (Kind::ContentFiltered, "contentfilterfinishreasonerror | contentpolicyviolationerror"),
    (Kind::Unsupported, "notimplementederror | unsupportedoperationexception"),
    (Kind::TlsUntrusted, "sslcertverificationerror"),
];
