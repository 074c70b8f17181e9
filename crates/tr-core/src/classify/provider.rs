//! Identifiers that services, runtimes and browsers put into their errors.
//!
//! Anthropic, OpenAI, Google, AWS, Node and undici, Chromium, databases: no prose contains these
//! by accident.
use super::{Kind, scan::Group};

/// By kind.
pub(super) const IDENTIFIERS: &[Group] = &[
    (
        Kind::Timeout,
        "deadline_exceeded | execution_timeout | idle_timeout | modeltimeoutexception
         request_timeout | requesttimeoutexception | timeout_error",
    ),
    (
        Kind::NetworkTimeout,
        "err_connection_timed_out | err_socket_connection_timeout | err_timed_out
         esockettimedout | und_err_body_timeout | und_err_connect_timeout
         und_err_headers_timeout",
    ),
    (
        Kind::RateLimited,
        "rate_limit_error | rate_limit_exceeded | rate_limited | ratelimited
         ratelimitexceeded | requestlimitexceeded | requestthrottled | throttlederror
         throttlingexception | tokens_usage_based | too_many_requests | toomanyrequests
         toomanyrequestsexception | userratelimitexceeded",
    ),
    (
        Kind::ResourceExhausted,
        "limitexceededexception | provisionedthroughputexceededexception | resource_exhausted
         slowdown",
    ),
    (
        Kind::Overloaded,
        "engine_overloaded | engine_overloaded_error | model_overloaded | overloaded_error
         slow_down",
    ),
    (Kind::ServiceUnavailable, "service_unavailable | serviceunavailableexception"),
    (Kind::ConnectionRefused, "err_connection_refused"),
    (Kind::DnsFailure, "err_name_not_resolved | err_name_resolution_failed"),
    (
        Kind::ConnectionReset,
        "err_connection_closed | err_connection_reset | err_empty_response
         err_http2_stream_error | err_socket_closed | err_stream_premature_close
         und_err_socket",
    ),
    (
        Kind::NetworkError,
        "err_address_unreachable | err_http2_ping_failed | err_http2_protocol_error
         err_internet_disconnected | err_network | err_network_changed
         err_proxy_connection_failed | err_ssl_protocol_error | err_tunnel_connection_failed",
    ),
    (Kind::ServerError, "internalfailure | internalservererrorexception | internalserverexception"),
    (
        Kind::Conflict,
        "concurrent_modification | deadlock_detected | operationaborted | serialization_failure
         transactionconflictexception",
    ),
    (Kind::Busy, "clusterdown | lock_not_available | masterdown | sqlite_busy | sqlite_locked"),
    (Kind::Cancelled, "err_canceled | request_cancelled"),
    (
        Kind::InvalidInput,
        "err_assertion | err_invalid_arg_type | err_invalid_arg_value | err_invalid_url
         err_out_of_range | invalid_argument_error | invalid_arguments | invalid_block
         invalid_enum_value | invalid_format | invalid_function_parameters
         invalid_image_format | invalid_json | invalid_parameter | invalid_prompt
         invalid_string | invalid_type | invalid_union | invalid_value | json_validate_failed
         missing_argument | missing_required_parameter | sqlite_constraint
         string_above_max_length | string_type | too_big | too_small | und_err_invalid_arg
         unknown_parameter | unrecognized_keys | unsupported_parameter | unsupported_value
         validation_error | validationexception | wrongtype",
    ),
    (
        Kind::AuthFailed,
        "account_deactivated | api_key_invalid | authentication_error | expiredtoken
         expiredtokenexception | invalid_api_key | invalid_auth | invalid_grant | invalid_token
         invalidaccesskeyid | invalidclienttokenid | invalidsignatureexception | noauth
         not_authed | signaturedoesnotmatch | token_expired | token_revoked
         unauthorized_error | unrecognizedclientexception | wrongpass",
    ),
    (
        Kind::PermissionDenied,
        "access_denied | accessdenied | accessdeniedexception | err_blocked_by_client
         insufficient_permissions | insufficient_privilege | insufficient_scope | missing_scope
         noperm | permission_denied | permission_error | unsupported_country_region_territory",
    ),
    (
        Kind::NotFound,
        "channel_not_found | deployment_not_found | e_not_found | err_file_not_found
         err_module_not_found | file_not_found | model_not_found | module_not_found
         nosuchbucket | nosuchkey | not_found_error | resource_not_found
         resourcenotfoundexception | tool_not_found",
    ),
    (
        Kind::AlreadyExists,
        "already_exists | already_exists_error | bucketalreadyexists | bucketalreadyownedbyyou
         e11000 | resourcealreadyexistsexception | unique_violation",
    ),
    (
        Kind::TooLarge,
        "context_length_exceeded | entitytoolarge | max_tokens_exceeded
         model_context_window_exceeded | payload_too_large | request_too_large
         requestentitytoolargeexception",
    ),
    (
        Kind::QuotaExhausted,
        "billing_error | billing_hard_limit_reached | billing_not_active
         exceeded_current_quota_error | insufficient_balance | insufficient_funds
         insufficient_quota | payment_required | quota_exceeded",
    ),
    (
        Kind::ContentFiltered,
        "content_filter | content_policy_violation | data_inspection_failed
         image_content_policy_violation | moderation_blocked | prohibited_content
         responsibleaipolicyviolation",
    ),
    (Kind::Unsupported, "method_not_allowed | sqlite_readonly | unsupported_operation"),
    (Kind::PreconditionFailed, "conditionalcheckfailedexception | eresolve | resolutionimpossible"),
    (
        Kind::TlsUntrusted,
        "cert_has_expired | certificate_verify_failed | depth_zero_self_signed_cert
         err_cert_authority_invalid | err_cert_common_name_invalid | err_cert_date_invalid
         err_tls_cert_altname_invalid | self_signed_cert_in_chain
         unable_to_get_issuer_cert_locally | unable_to_verify_leaf_signature",
    ),
];

/// Identifiers that many failures of a provider share, by kind.
pub(super) const GENERIC: &[Group] = &[
    (Kind::NetworkError, "connection_error | network_error"),
    (Kind::ServerError, "api_error | internal_server_error | server_error"),
    (Kind::InvalidInput, "bad_request | invalid_request | invalid_request_error"),
];
