//! Creates JWTs in NATS's format. A JWT is signed with an nkey, and its id is the hash of its claims.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use jiff::Timestamp;
use nkeys::KeyPair;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha512_256};

const HEADER: &str = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;

/// The claims that every kind of JWT has.
#[derive(Serialize)]
struct JwtClaims<'c> {
    jti: &'c str,
    iat: i64,
    iss: &'c str,
    name: &'c str,
    sub: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    nats: &'c Value,
}

/// The subject of a JWT.
pub(super) struct JwtSubject<'s> {
    /// The subject's readable name.
    pub(super) name: &'s str,
    /// The subject's public key.
    pub(super) key: &'s str,
    /// Start of validity.
    pub(super) from: Timestamp,
    /// End of validity.
    pub(super) until: Option<Timestamp>,
}

/// Signs the claims about a subject. Returns the JWT.
pub(super) fn sign(
    issuer: &KeyPair,
    subject: &JwtSubject<'_>,
    nats: &Value,
) -> Result<String, nkeys::error::Error> {
    let issuer_key = issuer.public_key();
    let mut claims = JwtClaims {
        jti: "",
        iat: subject.from.as_second(),
        iss: &issuer_key,
        name: subject.name,
        sub: subject.key,
        exp: subject.until.map(Timestamp::as_second),
        nats,
    };
    let id = BASE32_NOPAD.encode(&Sha512_256::digest(json(&claims)));
    claims.jti = &id;
    let header = BASE64URL_NOPAD.encode(HEADER.as_bytes());
    let signed = format!("{header}.{}", BASE64URL_NOPAD.encode(&json(&claims)));
    let signature = BASE64URL_NOPAD.encode(&issuer.sign(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}

/// Serializes the claims. This cannot fail, because the claims hold only strings, numbers and JSON values.
fn json(claims: &JwtClaims<'_>) -> Vec<u8> {
    serde_json::to_vec(claims).unwrap_or_default()
}

/// Returns the text of a credentials file: the user's JWT and private key.
pub(super) fn creds(jwt: &str, seed: &str) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         Anyone who has this file can act as its owner. Keep it secret.\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_jwt_is_signed_and_its_id_is_the_hash_of_its_claims() {
        let (issuer, user) = (KeyPair::new_account(), KeyPair::new_user());
        let subject = JwtSubject {
            name: "demo.alice",
            key: &user.public_key(),
            from: Timestamp::from_second(1_800_000_000).unwrap(),
            until: None,
        };
        let jwt = sign(&issuer, &subject, &json!({ "type": "user", "version": 2 })).unwrap();
        let (signed, signature) = jwt.rsplit_once('.').unwrap();
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
        issuer.verify(signed.as_bytes(), &signature).unwrap();
        assert!(KeyPair::new_account().verify(signed.as_bytes(), &signature).is_err());

        let body = BASE64URL_NOPAD.decode(signed.split('.').nth(1).unwrap().as_bytes()).unwrap();
        let mut claims: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(claims["iss"], issuer.public_key());
        assert_eq!(claims["sub"], user.public_key());
        assert_eq!(claims["iat"], 1_800_000_000);
        assert!(claims.get("exp").is_none());
        // A hash of 32 bytes has 52 characters in base 32.
        assert_eq!(claims["jti"].take().as_str().unwrap().len(), 52);
    }
}
