//! Random secrets, and their digests.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sha2::{Digest as _, Sha256};

use super::AccessError;

/// The number of random bytes in a secret.
const BYTES: usize = 32;

/// A random secret, which is shown once and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(super) fn random() -> Result<Self, AccessError> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(|_| AccessError::NoRandomness)?;
        Ok(Self(BASE64URL_NOPAD.encode(&bytes)))
    }

    /// Returns the secret, to show it to the person or to send it to the browser.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns a random name that is no secret.
pub(crate) fn random_name() -> Result<String, AccessError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|_| AccessError::NoRandomness)?;
    Ok(HEXLOWER.encode(&bytes))
}

/// Returns the SHA-256 digest of a text in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_not_printed() {
        let (one, two) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.expose().len(), 43);
        assert_eq!(format!("{one:?}"), "Secret");
    }

    #[test]
    fn a_digest_is_sha_256() {
        assert_eq!(
            digest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
