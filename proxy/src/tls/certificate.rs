//! Looks into an X.509 certificate, as far as PostgreSQL's rules need it and rustls does not tell: names, dates, keys, the
//! digest that SCRAM binds to (RFC 5929: tls-server-end-point).
//!
//! Certificates of version 1 and those that only have a common name are read as well: PostgreSQL's own manual makes
//! such ones. Any bytes give a certificate or None, never a panic; nothing here is a proof, that is [`super::verify`]'s.

use std::net::IpAddr;

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// 1.2.840.113549.1.1, behind which one number names the hash.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// 1.2.840.10045.4
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// The parts of a certificate (RFC 5280: Certificate), borrowed from its DER bytes.
#[derive(Clone, Copy, Debug)]
pub struct Certificate<'a> {
    der: &'a [u8],
    /// 1 or 3, as people say it.
    pub version: u8,
    /// What the issuer signed.
    pub signed: &'a [u8],
    pub issuer: &'a [u8],
    pub subject: &'a [u8],
    /// Seconds since 1970.
    pub not_before: i64,
    pub not_after: i64,
    /// SubjectPublicKeyInfo, whole.
    pub key_and_algorithm: &'a [u8],
    /// The content of its AlgorithmIdentifier, and its key.
    pub key_algorithm: &'a [u8],
    pub key: &'a [u8],
    /// The content of the AlgorithmIdentifier of the issuer's signature, and that signature.
    pub signature_algorithm: &'a [u8],
    pub signature: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    pub fn parse(der: &'a [u8]) -> Option<Self> {
        let mut whole = Reader(Reader(der).take(SEQUENCE)?);
        let (signed, mut body) = {
            let element = whole.element()?;
            (element.whole, Reader(element.content_of(SEQUENCE)?))
        };
        let signature_algorithm = whole.take(SEQUENCE)?;
        let signature = bits(whole.take(BIT_STRING)?)?;
        let version = match body.take_if(VERSION) {
            Some(version) => Reader(version).element()?.content.last()?.checked_add(1)?,
            None => 1,
        };
        let _serial_number = body.element()?;
        let _signature_algorithm = body.take(SEQUENCE)?;
        let issuer = body.take(SEQUENCE)?;
        let mut validity = Reader(body.take(SEQUENCE)?);
        let subject = body.take(SEQUENCE)?;
        let key_and_algorithm = body.element()?;
        let mut key = Reader(key_and_algorithm.content_of(SEQUENCE)?);
        let mut extensions: &[u8] = &[];
        while let Some(element) = body.element() {
            if element.tag == EXTENSIONS {
                extensions = Reader(element.content).take(SEQUENCE)?;
            }
        }
        Some(Self {
            der,
            version,
            signed,
            issuer,
            subject,
            not_before: time(&validity.element()?)?,
            not_after: time(&validity.element()?)?,
            key_and_algorithm: key_and_algorithm.whole,
            key_algorithm: key.take(SEQUENCE)?,
            key: bits(key.take(BIT_STRING)?)?,
            signature_algorithm,
            signature,
            extensions,
        })
    }

    /// The subject's first common name.
    pub fn common_name(&self) -> Option<&'a [u8]> {
        let mut names = Reader(self.subject);
        while let Some(set) = names.take(SET) {
            let mut attribute = Reader(Reader(set).take(SEQUENCE)?);
            if attribute.take(OBJECT_IDENTIFIER)? == COMMON_NAME {
                return Some(attribute.element()?.content);
            }
        }
        None
    }

    pub fn dns_names(&self) -> Vec<&'a [u8]> {
        self.alternative_names(DNS_NAME)
    }

    pub fn ip_addresses(&self) -> Vec<IpAddr> {
        let address = |bytes: &[u8]| match bytes.len() {
            4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        };
        self.alternative_names(IP_ADDRESS).into_iter().filter_map(address).collect()
    }

    fn alternative_names(&self, kind: u8) -> Vec<&'a [u8]> {
        let mut found = Vec::new();
        let mut names = Reader(self.extension(SUBJECT_ALTERNATIVE_NAME).unwrap_or_default());
        while let Some(name) = names.element() {
            if name.tag == kind {
                found.push(name.content);
            }
        }
        found
    }

    /// The content of the SEQUENCE inside an extension.
    fn extension(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        let mut extensions = Reader(self.extensions);
        while let Some(extension) = extensions.take(SEQUENCE) {
            let mut extension = Reader(extension);
            if extension.take(OBJECT_IDENTIFIER)? != wanted {
                continue;
            }
            // A BOOLEAN "critical" may stand before the value.
            while let Some(element) = extension.element() {
                if element.tag == OCTET_STRING {
                    return Reader(element.content).take(SEQUENCE);
                }
            }
        }
        None
    }

    /// What SCRAM-SHA-256-PLUS binds to: the certificate's digest by the hash of its signature, SHA-256 in place of MD5 and
    /// SHA-1 (RFC 5929, section 4.1). None where the signature has no such hash (Ed25519) or names it in parameters (PSS).
    pub fn end_point_digest(&self) -> Option<Vec<u8>> {
        let algorithm = Reader(self.signature_algorithm).take(OBJECT_IDENTIFIER)?;
        let hash = match (algorithm.strip_prefix(RSA), algorithm.strip_prefix(ECDSA)) {
            (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => Sha256::digest(self.der).to_vec(),
            (Some([12]), _) | (_, Some([3, 3])) => Sha384::digest(self.der).to_vec(),
            (Some([13]), _) | (_, Some([3, 4])) => Sha512::digest(self.der).to_vec(),
            (Some([14]), _) | (_, Some([3, 1])) => Sha224::digest(self.der).to_vec(),
            _ => return None,
        };
        Some(hash)
    }
}

/// Takes DER elements off the front of some bytes.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Element<'a> {
    fn content_of(&self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }
}

impl<'a> Reader<'a> {
    fn element(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, header) = match first {
            0..=0x7f => (usize::from(first), 2),
            0x81..=0x84 => {
                let digits = rest.get(..usize::from(first - 0x80))?;
                let length = digits.iter().fold(0usize, |length, digit| length << 8 | usize::from(*digit));
                (length, 2 + digits.len())
            }
            _ => return None,
        };
        let (whole, rest) = self.0.split_at_checked(header.checked_add(length)?)?;
        self.0 = rest;
        Some(Element { tag, content: whole.get(header..)?, whole })
    }

    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.element()?.content_of(tag)
    }

    /// Leaves the element where it is if it is another.
    fn take_if(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut after = *self;
        let content = after.take(tag)?;
        *self = after;
        Some(content)
    }
}

/// A BIT STRING of whole bytes.
fn bits(content: &[u8]) -> Option<&[u8]> {
    content.split_first().and_then(|(unused, bits)| (*unused == 0).then_some(bits))
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ` (RFC 5280, section 4.1.2.5).
fn time(element: &Element<'_>) -> Option<i64> {
    let digits = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (element.tag, digits.len()) {
        (UTC_TIME, 12) => {
            let year: i16 = digits.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, digits.get(2..)?)
        }
        (GENERALIZED_TIME, 14) => (digits.get(..4)?.parse().ok()?, digits.get(4..)?),
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2).and_then(|text| text.parse::<i8>().ok());
    let date = jiff::civil::DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    jiff::tz::TimeZone::UTC.to_timestamp(date).ok().map(|at| at.as_second())
}

#[cfg(test)]
mod tests;
