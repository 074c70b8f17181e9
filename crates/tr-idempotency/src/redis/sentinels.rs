//! Sentinels, which know the primary.
use super::{fault, tls::Tls};
use redis::{
    Client, ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, TlsMode,
    sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType},
};
use std::time::Duration;
use tokio::time::timeout;

/// The client of sentinels. `primary` is an address whose host is the primary's name.
pub(super) fn client(
    sentinels: Vec<ConnectionInfo>,
    primary: &ConnectionInfo,
    tls: &Tls,
) -> Result<SentinelClient, RedisError> {
    #[cfg(not(feature = "redis-tls"))]
    let _ = tls;
    #[cfg(feature = "redis-tls")]
    if let Some(client) = tls.sentinels(&sentinels, primary) {
        return client;
    }
    let unnamed = (ErrorKind::InvalidClientConfig, "the address has no name of a primary");
    let (name, tls) = match primary.addr() {
        ConnectionAddr::Tcp(name, _) => (name, None),
        ConnectionAddr::TcpTls { host, .. } => (host, Some(TlsMode::Secure)),
        _ => return Err(unnamed.into()),
    };
    let settings = primary.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let mut node = SentinelNodeConnectionInfo::default()
        .set_redis_connection_info(settings)
        .set_tcp_settings(primary.tcp_settings().clone());
    if let Some(tls) = tls {
        node = node.set_tls_mode(tls);
    }
    SentinelClient::build(sentinels, name.clone(), Some(node), SentinelServerType::Master)
}

/// The primary by the sentinels, if that server confirms it.
pub(super) async fn primary(
    sentinels: &mut SentinelClient,
    patience: Duration,
) -> Result<Client, RedisError> {
    let why = match timeout(patience, sentinels.async_get_client()).await {
        Ok(Ok(client)) => return Ok(client),
        Ok(Err(error)) if fault::is_denied(&error) => return Err(error),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "they, or the primary, did not reply in time".to_owned(),
    };
    let what = "the sentinels name no reachable primary";
    Err((ErrorKind::MasterNameNotFoundBySentinel, what, why).into())
}
