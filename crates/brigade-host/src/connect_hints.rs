//! The next step after a failed connection to the NATS servers.

use brigade_nats::connect_error::{ConnectFailure, UsedCredentials};

use crate::variables;

/// Returns hints for each cause of a failed connection.
pub(crate) fn hints(failure: &ConnectFailure) -> Vec<String> {
    match failure {
        ConnectFailure::Unreachable { .. } => vec![
            "check the address, that the server is running, and that no firewall blocks it".into(),
            "`--wait=60s` waits longer for a server that is starting".into(),
        ],
        ConnectFailure::Silent { .. } => vec![
            "if the address is right, the server hangs: its log may say why".into(),
            "check the port: NATS servers listen for clients on 4222 unless configured otherwise".into(),
            "a server that expects TLS first (`handshake_first: true`) is not supported; set it to \
             `auto` or remove it"
                .into(),
        ],
        ConnectFailure::NotNats { .. } => vec![
            "check the host and the port: NATS servers listen for clients on 4222 unless configured \
             otherwise, and 8222 is only for monitoring"
                .into(),
        ],
        ConnectFailure::PlainServer { server, ca: None } => vec![format!(
            "use the address {} for a connection without encryption, or let the operator turn on TLS",
            server.replace("tls://", "nats://")
        )],
        ConnectFailure::PlainServer { ca: Some(_), .. } => {
            vec!["leave out --ca for a connection without encryption, or let the operator turn on TLS".into()]
        }
        ConnectFailure::UnknownCa { ca: None, .. } => {
            vec!["name the certificate file of its CA with `--ca FILE`".into()]
        }
        ConnectFailure::UnknownCa { ca: Some(ca), .. } => vec![format!(
            "{} is not the CA of this server; ask its operator for the CA's certificate, and name it \
             with `--ca FILE`",
            ca.display()
        )],
        ConnectFailure::ServerCertificate { .. } => vec![
            "the operator of the server must install a certificate that is valid now and names the \
             host in the address"
                .into(),
        ],
        ConnectFailure::ClientCertificate { .. } => {
            vec!["name a certificate that the server accepts with `--cert FILE --key FILE`".into()]
        }
        ConnectFailure::CertificateFiles { .. } => {
            vec!["check the files given with --ca, --cert and --key; each must be in PEM format".into()]
        }
        ConnectFailure::CredentialsFile { .. } => vec![format!(
            "check --creds, {}, `creds` in brigade.toml, and the CREDENTIALS of `brigade store list`",
            variables::CREDS
        )],
        ConnectFailure::NoCredentials { .. } => {
            vec!["name your credentials with `--creds FILE`; the operator of the server issues them with \
                  `brigade org add-member`"
                .into()]
        }
        ConnectFailure::Expired { credentials } => vec![new_credentials(credentials)],
        ConnectFailure::Refused { credentials } => vec![
            format!(
                "the credentials in {} were revoked, or the server does not know their organisation yet",
                credentials.file.display()
            ),
            "the operator of the server sees which with `brigade org list`; after a revocation, \
             `brigade org add-member` issues new ones; for a new organisation, `brigade org apply` \
             informs the server"
                .into(),
        ],
        _ => Vec::new(),
    }
}

fn new_credentials(credentials: &UsedCredentials) -> String {
    format!(
        "{} cannot be used any more; the operator of the server issues new ones with \
         `brigade org add-member`",
        credentials.file.display()
    )
}
