//! What happened, in so many words.
use super::super::{Kind, scan::Group};

/// By kind.
pub(super) const FAILURES: &[Group] = &[
    (
        Kind::Timeout,
        "aborted due to timeout | api timeout | command timeout | deadline exceeded
         deadline expired | deadline has elapsed | did not respond in time
         did not respond within | exceeded .. timeout | exceeded the time limit
         exceeded time limit | exceeded timeout | execution timeout | idle timeout
         navigation timeout | no response received within | operation timeout | query timeout
         request timeout | response timeout | script timeout | server timeout | session timeout
         statement timeout | taking too long | time limit exceeded | time out | timed out
         timedout | timeout .. exceeded | timeout after | timeout error | timeout exceeded
         timeout expired | timeout occurred | timeout of .. elapsed | timeout of .. elapsing
         timeout reached | timeout waiting | timeout was reached | timeout when | timeout while
         too long to respond | took too long | tool timeout",
    ),
    (
        Kind::NetworkTimeout,
        "body timeout | client timeout exceeded | connect timed out | connect timeout
         connection attempt failed because the connected party did not properly respond
         connection attempt timed out | connection timed out | connection timeout
         failed to connect .. timed out | handshake timed out | handshake timeout
         headers timeout | i o timeout | io timeout | network is unreachable timed out
         network request timed out | network timeout | read timed out | read timeout
         socket hang up timeout | socket timed out | socket timeout | upstream request timeout
         upstream timed out | write timed out | write timeout",
    ),
    (
        Kind::RateLimited,
        "api rate limit | calls per second | exceed .. rate limit | exceeded .. rate limit
         exceeded .. rate limits | exceeding the rate limit | hit .. rate limit
         query limit reached | rate exceeded | rate limit error | rate limit exceeded
         rate limit has been exceeded | rate limit hit | rate limit of | rate limit reached
         rate limit was exceeded | rate limited | rate limits exceeded | ratelimit exceeded
         reached .. rate limit | request rate is too high | request rate too large
         requests per minute | requests per second | secondary rate limit
         slow down your requests | throttled | throttling | tokens per minute
         too many api requests | too many calls | too many requests | would exceed your",
    ),
    (
        Kind::ResourceExhausted,
        "capacity exceeded | concurrency limit | maximum number of concurrent
         quota exceeded for quota metric | resource exhausted | resource has been exhausted
         too many concurrent | usage limit reached",
    ),
    (
        Kind::Overloaded,
        "at capacity | currently experiencing high | high demand | no capacity
         out of capacity | over capacity | overloaded | server busy | server is busy
         service is busy | system is busy | too busy",
    ),
    (
        Kind::ServiceUnavailable,
        "backend unavailable | down for maintenance | no healthy upstream
         server is temporarily unavailable | server unavailable
         service is currently unavailable | service is temporarily unavailable
         service is unavailable | service temporarily unavailable | service unavailable
         under maintenance",
    ),
    (
        Kind::ConnectionRefused,
        "actively refused | cannot connect to the docker daemon | connect refused
         connection could be made because the target | connection refused
         connection to the server .. was refused | connection was refused | no listener
         refused the network connection | refused to connect",
    ),
    (
        Kind::DnsFailure,
        "could not resolve host | could not resolve hostname | could not resolve proxy
         couldn't resolve host | couldn't resolve proxy | dns error | dns failure
         dns lookup failed | dns query failed | dns resolution | domain name not found
         failed to lookup address information | failed to resolve | getaddrinfo failed
         host not found | hostname could not be found | hostname not found | name not resolved
         name or service not known | name resolution failed | name resolution failure
         no address associated with hostname | no such host | nodename nor servname provided
         server misbehaving | temporary failure in name resolution
         temporary failure resolving | unable to resolve host",
    ),
    (
        Kind::ConnectionReset,
        "before headers reset reason | broken connection | broken pipe | browser disconnected
         browser has been closed | browser has disconnected | closed before message completed
         closed the connection | closed unexpectedly | connection aborted | connection broken
         connection closed | connection dropped | connection has been closed
         connection is closed | connection lost | connection reset | connection terminated
         connection was closed | connection was reset | early eof | empty reply from server
         eof occurred in violation of protocol | forcibly closed | goaway
         incomplete chunked read | incomplete message | lost connection
         net http request canceled while waiting | not closed cleanly | other side closed
         page has been closed | partial file | peer closed connection | premature close
         premature eof | prematurely closed | process exited | recv failure
         remote end closed connection | remote end hung up | reset before headers | rst_stream
         send failure | server disconnected | server has gone away | server process crashed
         session closed | socket closed | socket disconnected | socket hang up
         ssl_error_syscall | stream closed | stream ended unexpectedly | target closed
         terminating connection due to | transfer closed with | transport closed
         transport is closing | unexpected disconnect | unexpected end of file | unexpected eof
         unexpectedly closed | websocket closed | websocket was closed",
    ),
    (
        Kind::BadGateway,
        "bad gateway | bad response from upstream | invalid response from the upstream
         invalid response from upstream",
    ),
    (Kind::GatewayTimeout, "gateway time out | gateway timeout"),
    (
        Kind::ServerError,
        "an error occurred while processing your request | backend error
         error processing your request | internal error | internal service error | server error
         server had an error | something went wrong | the server encountered",
    ),
    (
        Kind::Conflict,
        "concurrent update | conflicting operation | could not serialize access
         deadlock detected | deadlock found | edit conflict | object has been modified
         optimistic lock | please retry your transaction | restart transaction
         serialization failure | transaction has been aborted | transaction was deadlocked
         update conflict | write conflict | writeconflict",
    ),
    (Kind::NotReady, "is not ready | not ready yet | not yet ready"),
    (
        Kind::Busy,
        "another git process | another installation is in progress
         another operation is in progress | another process
         can't write against a read only replica | cannot allocate memory | cold start
         connection pool exhausted | connection slots are reserved | could not acquire lock
         could not get lock | could not lock | could not obtain lock | currently locked
         database is locked | database system is shutting down | database table is locked
         execution context was destroyed | failed to acquire lock | file is locked
         frame was detached | in recovery mode | is being provisioned | is currently loading
         is locked by | is starting up | leader election | lock timeout | lock wait timeout
         locked by another | max number of clients reached | nobrokersavailable
         node is detached | not attached to the dom | out of memory | please retry
         please try again | pool timed out | queue is full | redis is busy | redis is loading
         resource busy | resource deadlock | retry later | retry the request
         stale element reference | still starting | temporarily locked | temporarily overloaded
         temporarily unavailable | temporary error | temporary failure | text file busy
         too many clients | too many connections | too many open files | transient error
         try again in a | try again later | unable to acquire lock | waiting for file lock
         warming up",
    ),
    (
        Kind::InvalidInput,
        "body is not valid json | check constraint failed | could not compile
         could not parse json | data too long for column | foreign key constraint failed
         foreign key constraint fails | invalid json in request | not a git repository
         not null constraint failed | operation against a key holding the wrong kind of value
         sql syntax | strict mode violation | syntax error at or near
         violates check constraint | violates foreign key constraint
         violates not null constraint",
    ),
    (
        Kind::AuthFailed,
        "access denied for user | api key expired | api key has expired | api key is invalid
         api key is missing | api key is not set | api key is required | api key not found
         api key not valid | auth failed | auth failure | authentication error
         authentication failed | authentication failure | authentication is required
         authentication required | authorization failed | authorization required
         bad credentials | could not find credentials | could not load credentials
         could not read password | could not read username | credentials are invalid
         credentials have expired | expired token | host key verification failed
         incorrect api key | incorrect password | invalid access token | invalid api key
         invalid auth | invalid authentication | invalid bearer token | invalid client
         invalid credential | invalid credentials | invalid password | invalid signature
         invalid token | invalid username or password | invalid x api key | jwt expired
         log in first | login required | missing api key | must be logged in | no api key
         no credentials | not authenticated | not logged in | oauth token revoked
         please log in | requires authentication | security token included in the request
         session expired | session has expired | signature we calculated does not match
         token expired | token has expired | token is expired | unable to locate credentials
         unauthenticated | unauthorized | wrong credentials",
    ),
    (
        Kind::PermissionDenied,
        "access blocked | access is denied | access to this resource is denied
         admin access required | blocked by cors policy | blocked by robots | denied by user
         do not have access | does not have access | does not have permission
         don't have access | insufficient permission | insufficient permissions
         insufficient privileges | insufficient scope | missing access | missing permissions
         not authorized to | not permitted | outside allowed directories | permission denied
         permission to use | pull access denied | read only file system | read only transaction
         rejected by user | request was denied | requires admin | resource not accessible by
         tool use was rejected | user denied | user doesn't want to proceed | user rejected
         was rejected by | write access | you do not have permission
         you don't have permission",
    ),
    (
        Kind::NotFound,
        "cannot find module | cannot find package | command not found
         could not find a version that satisfies | could not find exact match
         couldn't find remote ref | executable not found | manifest unknown | missing script
         model .. does not exist | no changes were made | no element found
         no matching distribution | no matching package | no matching version | no module named
         no node found for selector | no such column | no such container
         no such file or directory | no such image | no such table | not in this registry
         not recognized as an internal or external command | old_string not found
         page not found | pathspec | repository not found | string to replace not found
         the system cannot find | tool .. not found | unable to find image
         unable to locate package | unable to open database file | unknown database
         unknown revision or path",
    ),
    (
        Kind::AlreadyExists,
        "address in use | already in use | duplicate entry | duplicate key error
         duplicate key value | only one usage of each socket address
         port is already allocated | unique constraint",
    ),
    (
        Kind::QuotaExhausted,
        "billing details | credit balance is too low | daily limit
         exceeded your current quota | free tier limit | hard limit reached
         insufficient balance | insufficient credit | insufficient credits | insufficient funds
         insufficient quota | monthly limit | monthly quota | no credits | out of credits
         payment required | quota exceeded | spending limit | subscription has expired
         upgrade your plan | usage cap",
    ),
    (
        Kind::ContentFiltered,
        "blocked by content | blocked due to safety | content filter | content filtering policy
         content management policy | content policy | flagged by | prohibited content
         safety filter | safety filters | safety settings blocked | safety system
         usage policies | violates our",
    ),
    (
        Kind::PreconditionFailed,
        "automatic merge failed | cannot rebase | fix conflicts | merge conflict
         non fast forward | not mergeable | nothing to commit | peer dependency
         refusing to merge unrelated histories | unable to resolve dependency tree
         uncommitted changes | unmerged files | updates were rejected
         working tree is not clean | would be overwritten by",
    ),
    (
        Kind::NoSpace,
        "disk full | disk is full | disk quota exceeded | insufficient disk space
         no space left on device | not enough space",
    ),
    (
        Kind::TlsUntrusted,
        "certificate expired | certificate has expired | certificate is not trusted
         certificate is not valid | certificate is valid for | certificate required
         certificate signed by unknown authority | certificate verification failed
         certificate verify failed | does not match certificate's | invalid peer certificate
         pkix path building failed | self signed certificate | ssl certificate problem
         unable to find valid certification path | unable to get local issuer certificate
         unable to verify the first certificate",
    ),
];

/// What happened, in words that many failures share, by kind.
pub(super) const BROAD: &[Group] = &[
    (
        Kind::NetworkError,
        "all connection attempts failed | can't connect | cannot connect
         communications link failure | connect error | connection error | connection failed
         connection failure | could not connect | couldn't connect | destination unreachable
         download failed | error decoding response body | error reading a body from connection
         error sending request | error trying to connect | failed to connect
         failed to download | failed to establish a new connection | failed to fetch
         fetch failed | handshake failed | handshake failure | host is down
         host is unreachable | host unreachable | internet connection | internet disconnected
         load failed | max retries exceeded with url | network changed
         network connection was lost | network error | network is down | network is unreachable
         network unreachable | networkerror when attempting to fetch resource
         no reachable servers | no route to host | not connected | protocol error
         proxy connect aborted | proxy error | request failed due to network
         server selection error | ssl handshake | ssl routines | stream error | tls handshake
         transport error | unable to access .. proxy | unable to connect",
    ),
    (
        Kind::Cancelled,
        "canceled by user | cancelled by client | cancelled by user | context canceled
         interrupted by user | operation canceled | operation cancelled | operation was aborted
         operation was canceled | operation was cancelled | request aborted by user
         request canceled | request cancelled | request was canceled | request was cancelled
         task was cancelled | user canceled | user cancelled",
    ),
];
