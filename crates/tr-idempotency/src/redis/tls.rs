//! Addresses and their TLS settings.
#[cfg(not(feature = "redis-tls"))]
use redis::ConnectionInfo;

/// The TLS settings for servers whose addresses ask for TLS.
#[derive(Clone, Debug, Default)]
pub(super) struct Tls {
    #[cfg(feature = "redis-tls")]
    pub(super) settings: tr_tls::Settings,
}

#[cfg(not(feature = "redis-tls"))]
impl Tls {
    /// Parses an address.
    pub(super) fn info(&self, address: &str) -> Result<ConnectionInfo, String> {
        if ["rediss:", "valkeys:"].iter().any(|scheme| address.starts_with(scheme)) {
            return Err("it asks for TLS: enable the feature `redis-tls`".into());
        }
        redis::IntoConnectionInfo::into_connection_info(address).map_err(|error| error.to_string())
    }

    /// Without the feature there are no certificates.
    pub(super) const fn check_use(&self, _all: &[&ConnectionInfo]) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(feature = "redis-tls")]
mod with_certificates {
    use super::Tls;
    use redis::{
        ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, TlsMode,
        sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
    };

    impl Tls {
        /// Parses an address.
        pub(in super::super) fn info(&self, address: &str) -> Result<ConnectionInfo, String> {
            let info = tr_tls::redis::connection_info(address, &self.settings);
            info.map_err(|error| error.to_string())
        }

        /// Refuses certificates where no address asks for TLS.
        pub(in super::super) fn check_use(&self, all: &[&ConnectionInfo]) -> Result<(), String> {
            if self.settings.is_default() || all.iter().any(|info| tr_tls::redis::is_secure(info)) {
                return Ok(());
            }
            Err("certificates are set, but it does not use TLS: write `rediss://`".into())
        }

        /// The client of sentinels with certificates: only redis's sentinel builder accepts these,
        /// and it accepts one user for all sentinels.
        pub(in super::super) fn sentinels(
            &self,
            sentinels: &[ConnectionInfo],
            primary: &ConnectionInfo,
        ) -> Option<Result<SentinelClient, RedisError>> {
            let ConnectionAddr::TcpTls { host: name, .. } = primary.addr() else { return None };
            let certificates = tr_tls::redis::certificates(&self.settings)?;
            let user = |info: &ConnectionInfo| {
                let settings = info.redis_settings();
                [settings.username(), settings.password()].map(|part| part.map(str::to_owned))
            };
            let [username, password] = sentinels.first().map(user).unwrap_or_default();
            if sentinels.iter().any(|one| user(one) != [username.clone(), password.clone()]) {
                let why =
                    "with certificates of your own, all sentinels need the same user and password";
                return Some(Err((ErrorKind::InvalidClientConfig, why).into()));
            }
            let addrs: Vec<_> = sentinels.iter().map(|one| one.addr().clone()).collect();
            let builder = SentinelClientBuilder::new(addrs, name, SentinelServerType::Master);
            Some(builder.and_then(|mut builder| {
                if let Some(username) = username {
                    builder = builder.set_client_to_sentinel_username(username);
                }
                if let Some(password) = password {
                    builder = builder.set_client_to_sentinel_password(password);
                }
                let settings = primary.redis_settings();
                if let Some(username) = settings.username() {
                    builder = builder.set_client_to_redis_username(username);
                }
                if let Some(password) = settings.password() {
                    builder = builder.set_client_to_redis_password(password);
                }
                builder
                    .set_client_to_redis_db(settings.db())
                    .set_client_to_redis_protocol(ProtocolVersion::RESP3)
                    .set_client_to_redis_tcp_settings(primary.tcp_settings().clone())
                    .set_client_to_redis_tls_mode(TlsMode::Secure)
                    .set_client_to_redis_certificates(certificates)
                    .build()
            }))
        }
    }
}

#[cfg(all(test, not(feature = "redis-tls")))]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_asks_for_tls_is_an_error_that_names_the_feature() {
        for address in ["rediss://:secret@host", "valkeys://host"] {
            let error = Tls::default().info(address).unwrap_err();
            assert!(error.contains("`redis-tls`") && !error.contains("secret"), "{error}");
        }
        Tls::default().info("redis://host").unwrap();
    }
}
