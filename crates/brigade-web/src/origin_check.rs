//! Checks that a request comes from the page of this server, or from a program, and not from another web page.
//!
//! A web page on another site can make a browser send requests to this server. The browser names the site in `Origin`, and the
//! requested address in `Host`. Another site cannot forge either of them. A name of another site that resolves to
//! 127.0.0.1 is refused because of `Host`.

use axum::http::{HeaderMap, Uri, header};

use crate::problem::{Problem, ProblemKind};

/// The header in which the page repeats the value that only pages of this server can read.
pub(crate) const CSRF_HEADER: &str = "x-brigade-csrf";

/// The names under which browsers reach this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnNames {
    /// `http` or `https`.
    scheme: &'static str,
    /// The accepted values of `Host`, in lower case.
    hosts: Vec<String>,
}

impl OwnNames {
    pub(crate) fn new(is_tls: bool, hosts: Vec<String>) -> Self {
        let scheme = if is_tls { "https" } else { "http" };
        Self { scheme, hosts: hosts.into_iter().map(|host| host.to_lowercase()).collect() }
    }

    /// Fails unless the request names one of the hosts exactly.
    pub(crate) fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let refused = || {
            let names = self.hosts.join(" or ");
            Problem::new(ProblemKind::Forbidden, "the request is for another host name")
                .hint(format!("open the page as {names}"))
        };
        let mut given = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else { return Err(refused()) };
        let host = host.to_str().map_err(|_| refused())?.to_lowercase();
        let is_own = |name: &str| self.hosts.iter().any(|own| own == name);
        // A request line with a whole address names the host a second time.
        let is_line_own =
            uri.authority().is_none_or(|authority| is_own(&authority.as_str().to_lowercase()));
        if is_own(&host) && is_line_own { Ok(()) } else { Err(refused()) }
    }

    /// Fails if a page of another site made the request.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<HasOrigin, Problem> {
        let refused = || {
            Problem::new(ProblemKind::Forbidden, "the request comes from a page of another site")
        };
        if let Some(site) = headers.get("sec-fetch-site")
            && site != "same-origin"
            && site != "none"
        {
            return Err(refused());
        }
        let mut given = headers.get_all(header::ORIGIN).iter();
        let origin = match (given.next(), given.next()) {
            (None, _) => return Ok(HasOrigin::No),
            (Some(origin), None) => origin.to_str().map_err(|_| refused())?.to_lowercase(),
            (Some(_), Some(_)) => return Err(refused()),
        };
        let is_own = self.hosts.iter().any(|host| origin == format!("{}://{host}", self.scheme));
        if is_own { Ok(HasOrigin::Own) } else { Err(refused()) }
    }
}

/// Whether a request names the page that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HasOrigin {
    /// The request comes from a page of this server.
    Own,
    /// The request names no page.
    No,
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn names() -> OwnNames {
        OwnNames::new(false, vec!["127.0.0.1:8000".into(), "LocalHost:8000".into()])
    }

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn only_the_own_names_are_accepted() {
        for (uri, hosts, is_accepted) in [
            ("/", &["127.0.0.1:8000"][..], true),
            ("/", &["localhost:8000"], true),
            ("/", &["LOCALHOST:8000"], true),
            ("/", &[], false),
            ("/", &["127.0.0.1"], false),
            ("/", &["127.0.0.1:8001"], false),
            ("/", &["evil.example:8000"], false),
            ("/", &["127.0.0.1:8000.evil.example"], false),
            ("/", &["localhost:8000@evil.example"], false),
            ("/", &["127.0.0.1:8000", "127.0.0.1:8000"], false),
            ("http://127.0.0.1:8000/", &["127.0.0.1:8000"], true),
            ("http://evil.example/", &["127.0.0.1:8000"], false),
        ] {
            let fields: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            let checked = names().check_host(&uri.parse().unwrap(), &headers(&fields));
            assert_eq!(checked.is_ok(), is_accepted, "{uri} {hosts:?}");
        }
    }

    #[test]
    fn only_the_own_page_is_accepted() {
        let own = ("origin", "http://127.0.0.1:8000");
        for (fields, expected) in [
            (&[][..], Some(HasOrigin::No)),
            (&[own], Some(HasOrigin::Own)),
            (&[("origin", "http://localhost:8000")], Some(HasOrigin::Own)),
            (&[own, ("sec-fetch-site", "same-origin")], Some(HasOrigin::Own)),
            (&[("sec-fetch-site", "none")], Some(HasOrigin::No)),
            (&[own, ("sec-fetch-site", "cross-site")], None),
            (&[("sec-fetch-site", "same-site")], None),
            (&[own, own], None),
            (&[("origin", "null")], None),
            (&[("origin", "https://127.0.0.1:8000")], None),
            (&[("origin", "http://127.0.0.1:8001")], None),
            (&[("origin", "http://127.0.0.1:8000.evil.example")], None),
            (&[("origin", "http://evil.example")], None),
        ] {
            assert_eq!(names().check_origin(&headers(fields)).ok(), expected, "{fields:?}");
        }
    }
}
