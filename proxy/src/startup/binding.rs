//! Whether SCRAM works between clients and upstream with TLS as it is configured, told to the operator in words.
//!
//! SCRAM's exchange is relayed, and over TLS it is bound to the certificate that each side sees (RFC 5929). freshet ends
//! TLS on both legs, so on two encrypted legs both sides must see the same certificate. md5, cleartext and the others
//! are bound to nothing and work everywhere.

use std::io;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::upstream::address::UpstreamAddress;
use crate::upstream::{connect, relay};
use crate::wire::startup::write_startup;

/// How a combination of the two legs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    BothPlain,
    PlainToTls,
    TlsToPlain,
    SameCertificate,
    OtherCertificate,
}

/// The leg to clients.
#[derive(Clone, Debug, Default)]
pub struct ClientLeg {
    /// Shown to clients; None: no TLS.
    pub certificate: Option<CertificateDer<'static>>,
    /// Nobody comes in the clear.
    pub is_required: bool,
}

/// The combinations that occur: clients may come with TLS and without. Where the URL's `sslmode` leaves upstream the choice of
/// the line it is the one on which upstream admits the URL's own role.
pub async fn assess(clients: &ClientLeg, upstream: &UpstreamAddress, limit: Duration) -> io::Result<Vec<Binding>> {
    if upstream.attempts().len() == 1 {
        let line = connect::open(upstream, limit).await?;
        return Ok(combine(clients, line.is_encrypted(), line.peer_certificate()));
    }
    let mut packet = Vec::new();
    write_startup(&mut packet, &[("user", &upstream.user), ("database", &upstream.database)]);
    let (line, _) = relay::open(upstream, &packet, limit).await?;
    Ok(combine(clients, line.is_encrypted(), line.peer_certificate()))
}

fn combine(clients: &ClientLeg, upstream_has_tls: bool, upstream: Option<&CertificateDer<'_>>) -> Vec<Binding> {
    let plain = (!clients.is_required).then_some(match upstream_has_tls {
        true => Binding::PlainToTls,
        false => Binding::BothPlain,
    });
    let tls = clients.certificate.as_ref().map(|own| match upstream_has_tls {
        true if upstream.is_some_and(|theirs| own.as_ref() == theirs.as_ref()) => Binding::SameCertificate,
        true => Binding::OtherCertificate,
        false => Binding::TlsToPlain,
    });
    plain.into_iter().chain(tls).collect()
}

impl Binding {
    /// False: clients that bind to the certificate are refused.
    pub fn works(self) -> bool {
        self != Self::OtherCertificate
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::BothPlain => "clients in the clear, upstream in the clear: SCRAM works",
            Self::PlainToTls => {
                "clients in the clear, upstream over TLS: SCRAM works, SCRAM-SHA-256-PLUS is not offered to these clients"
            }
            Self::TlsToPlain => {
                "clients over TLS, upstream in the clear: SCRAM works, but not for clients with channel_binding=require"
            }
            Self::SameCertificate => {
                "clients over TLS, upstream over TLS, both with the same certificate: SCRAM works, with channel binding"
            }
            Self::OtherCertificate => {
                "clients over TLS, upstream over TLS with another certificate: SCRAM fails for clients that use channel \
                 binding, as libpq, JDBC and Npgsql do by default"
            }
        }
    }

    /// What to do, where it does not work.
    pub fn remedy(self) -> Option<&'static str> {
        (!self.works()).then_some(
            "set listen.tls_certificate and listen.tls_key to upstream's own; or reach upstream by a Unix socket or with \
             sslmode=disable in upstream.url; or let clients set channel_binding=disable",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_has_its_row() {
        let (own, other) = (CertificateDer::from(vec![1]), CertificateDer::from(vec![2]));
        let plain = ClientLeg::default();
        assert_eq!(combine(&plain, false, None), [Binding::BothPlain]);
        assert_eq!(combine(&plain, true, Some(&own)), [Binding::PlainToTls]);
        let both = ClientLeg { certificate: Some(own.clone()), is_required: false };
        assert_eq!(combine(&both, false, None), [Binding::BothPlain, Binding::TlsToPlain]);
        let required = ClientLeg { certificate: Some(own.clone()), is_required: true };
        assert_eq!(combine(&required, true, Some(&own)), [Binding::SameCertificate]);
        let rows = combine(&required, true, Some(&other));
        assert_eq!(rows, [Binding::OtherCertificate]);
        assert!(!rows[0].works() && rows[0].remedy().is_some());
    }
}
