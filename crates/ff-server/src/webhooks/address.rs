//! Where webhooks may go: to every address of the public internet, and to the networks an operator has opened.
//!
//! **Invariant:** a connection is made only to an address that was judged here, whatever name led to it. What is not known to be
//! public is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ff_core::webhook::WebhookUrl;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Host;

/// How webhooks are sent.
#[derive(Clone, Debug, Default)]
pub struct WebhookOptions {
    /// Networks that may be reached although they are not public, and without encryption.
    pub allow: Vec<IpNet>,
}

/// What may be reached.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    allow: Vec<IpNet>,
}

/// Why an address is not reached. Says what kind it is, not which: whoever reads it may be outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The address is not a public one.
    #[error("the host is {0}; a server started with --webhook-allow for its network would send there")]
    Special(&'static str),
    /// Without encryption nothing is sent to a public address.
    #[error(
        "nothing is sent without encryption: use https://, or start the server with --webhook-allow for the host's network"
    )]
    Unencrypted,
    /// The name leads nowhere.
    #[error("the host has no address")]
    Nowhere,
}

impl Reach {
    /// The public internet, and what the options open.
    #[must_use]
    pub fn new(options: &WebhookOptions) -> Self {
        Self { allow: options.allow.clone() }
    }

    /// Why nothing will ever be sent there, as far as the address itself says.
    #[must_use]
    pub fn refusal(&self, url: &WebhookUrl) -> Option<Unreachable> {
        let address = match url.as_url().host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => {
                // A name may lead to an opened network, if there is one.
                return (!url.is_https() && self.allow.is_empty()).then_some(Unreachable::Unencrypted);
            }
        };
        self.judge(address, url.is_https()).err()
    }

    /// Refuses an address that must not be reached this way.
    pub fn judge(&self, address: IpAddr, encrypted: bool) -> Result<(), Unreachable> {
        let address = address.to_canonical();
        if self.allow.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        match special(address) {
            Some(what) => Err(Unreachable::Special(what)),
            None if encrypted => Ok(()),
            None => Err(Unreachable::Unencrypted),
        }
    }

    /// The addresses a name leads to. One that must not be reached spoils them all: whoever can put it there can also choose
    /// which one is used.
    pub fn judge_all(&self, addresses: &[IpAddr], encrypted: bool) -> Result<(), Unreachable> {
        if addresses.is_empty() {
            return Err(Unreachable::Nowhere);
        }
        addresses.iter().try_for_each(|address| self.judge(*address, encrypted))
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(first: [u16; 4], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first[0], first[1], first[2], first[3], 0, 0, 0, 0), prefix)
}

/// Every block of IPv4 that is not public, after IANA's registry of special addresses.
const SPECIAL_V4: [(Ipv4Net, &str); 15] = [
    (v4(0, 0, 0, 0, 8), "an address of this network"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 0, 10), "an address of a carrier's network"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "an address reserved for protocols"),
    (v4(192, 0, 2, 0, 24), "an address for documentation"),
    (v4(192, 88, 99, 0, 24), "an address reserved for protocols"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "an address for benchmarks"),
    (v4(198, 51, 100, 0, 24), "an address for documentation"),
    (v4(203, 0, 113, 0, 24), "an address for documentation"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

/// The public part of IPv6.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0], 3);

/// Blocks within it that are not public.
const SPECIAL_V6: [(Ipv6Net, &str); 4] = [
    // Teredo among them, which leads to an IPv4 address.
    (v6([0x2001, 0, 0, 0], 23), "an address reserved for protocols"),
    (v6([0x2001, 0xdb8, 0, 0], 32), "an address for documentation"),
    (v6([0x2002, 0, 0, 0], 16), "an address that leads to another (6to4)"),
    (v6([0x3fff, 0, 0, 0], 20), "an address for documentation"),
];

/// Blocks outside of it that have a better name than that.
const OTHER_V6: [(Ipv6Net, &str); 4] = [
    (v6([0xfc00, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0], 10), "a private address"),
    (v6([0xff00, 0, 0, 0], 8), "a multicast address"),
];

/// What a translator from IPv6 to IPv4 answers to; the last four bytes are where it leads.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0], 96);

/// What the address is instead of a public one.
fn special(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    SPECIAL_V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if NAT64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return special_v4(Ipv4Addr::new(a, b, c, d));
    }
    if GLOBAL_V6.contains(&address) {
        return SPECIAL_V6.iter().find(|(network, _)| network.contains(&address)).map(|(_, what)| *what);
    }
    if address.is_loopback() {
        return Some("a loopback address");
    }
    let named = OTHER_V6.iter().find(|(network, _)| network.contains(&address)).map(|(_, what)| *what);
    Some(named.unwrap_or("a reserved address"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap_or_else(|_| panic!("{text} is an address"))
    }

    #[test]
    fn every_kind_of_address_is_known() {
        for (text, what) in [
            ("0.0.0.0", Some("an address of this network")),
            ("0.1.2.3", Some("an address of this network")),
            ("9.255.255.255", None),
            ("10.0.0.0", Some("a private address")),
            ("10.255.255.255", Some("a private address")),
            ("11.0.0.0", None),
            ("100.63.255.255", None),
            ("100.64.0.0", Some("an address of a carrier's network")),
            ("100.127.255.255", Some("an address of a carrier's network")),
            ("100.128.0.0", None),
            ("126.255.255.255", None),
            ("127.0.0.1", Some("a loopback address")),
            ("127.255.255.254", Some("a loopback address")),
            ("128.0.0.1", None),
            ("169.254.0.1", Some("a link-local address")),
            // Where clouds answer with credentials.
            ("169.254.169.254", Some("a link-local address")),
            ("169.254.170.2", Some("a link-local address")),
            ("100.100.100.200", Some("an address of a carrier's network")),
            ("fd00:ec2::254", Some("a private address")),
            ("172.15.255.255", None),
            ("172.16.0.0", Some("a private address")),
            ("172.31.255.255", Some("a private address")),
            ("172.32.0.0", None),
            ("192.0.0.8", Some("an address reserved for protocols")),
            ("192.0.0.170", Some("an address reserved for protocols")),
            ("192.0.2.1", Some("an address for documentation")),
            ("192.88.99.1", Some("an address reserved for protocols")),
            ("192.167.255.255", None),
            ("192.168.0.1", Some("a private address")),
            ("192.169.0.0", None),
            ("198.18.0.1", Some("an address for benchmarks")),
            ("198.19.255.255", Some("an address for benchmarks")),
            ("198.51.100.7", Some("an address for documentation")),
            ("203.0.113.9", Some("an address for documentation")),
            ("223.255.255.255", None),
            ("224.0.0.1", Some("a multicast address")),
            ("239.255.255.255", Some("a multicast address")),
            ("240.0.0.1", Some("a reserved address")),
            ("255.255.255.255", Some("a reserved address")),
            ("8.8.8.8", None),
            ("::", Some("a reserved address")),
            ("::1", Some("a loopback address")),
            ("::7f00:1", Some("a reserved address")),
            ("::ffff:127.0.0.1", Some("a loopback address")),
            ("::ffff:169.254.169.254", Some("a link-local address")),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::127.0.0.1", Some("a loopback address")),
            ("64:ff9b::a9fe:a9fe", Some("a link-local address")),
            ("64:ff9b::8.8.8.8", None),
            ("64:ff9b:1::8.8.8.8", Some("a reserved address")),
            ("100::1", Some("a reserved address")),
            ("2001::1", Some("an address reserved for protocols")),
            ("2001:0:7f00:1::", Some("an address reserved for protocols")),
            ("2001:2::1", Some("an address reserved for protocols")),
            ("2001:20::1", Some("an address reserved for protocols")),
            ("2001:db8::1", Some("an address for documentation")),
            ("2002:7f00:1::", Some("an address that leads to another (6to4)")),
            ("2002:808:808::", Some("an address that leads to another (6to4)")),
            ("3fff::1", Some("an address for documentation")),
            ("2001:4860:4860::8888", None),
            ("2606:4700::1111", None),
            ("3ffe::1", None),
            ("4000::1", Some("a reserved address")),
            ("5f00::1", Some("a reserved address")),
            ("fc00::1", Some("a private address")),
            ("fdff::1", Some("a private address")),
            ("fe80::1", Some("a link-local address")),
            ("fec0::1", Some("a private address")),
            ("ff02::1", Some("a multicast address")),
        ] {
            assert_eq!(special(ip(text)), what, "{text}");
        }
    }

    fn reach(networks: &[&str]) -> Reach {
        let allow = networks.iter().map(|text| text.parse().expect("a network")).collect();
        Reach::new(&WebhookOptions { allow })
    }

    #[test]
    fn an_opened_network_is_reached_and_no_other() {
        let reach = reach(&["127.0.0.0/8", "fd12::/16"]);
        for (text, encrypted, answer) in [
            ("127.0.0.1", false, Ok(())),
            ("127.9.9.9", true, Ok(())),
            ("::ffff:127.0.0.1", false, Ok(())),
            ("64:ff9b::127.0.0.1", true, Err(Unreachable::Special("a loopback address"))),
            ("::1", true, Err(Unreachable::Special("a loopback address"))),
            ("fd12::5", false, Ok(())),
            ("fd13::5", true, Err(Unreachable::Special("a private address"))),
            ("10.0.0.1", false, Err(Unreachable::Special("a private address"))),
            ("8.8.8.8", true, Ok(())),
            ("8.8.8.8", false, Err(Unreachable::Unencrypted)),
        ] {
            assert_eq!(reach.judge(ip(text), encrypted), answer, "{text}");
        }
        assert_eq!(reach.judge_all(&[], true), Err(Unreachable::Nowhere));
        let mixed = [ip("8.8.8.8"), ip("10.0.0.1")];
        assert_eq!(reach.judge_all(&mixed, true), Err(Unreachable::Special("a private address")));
    }

    #[test]
    fn what_an_address_says_itself_is_known_at_submission() {
        let refusal = |reach: &Reach, url: &str| reach.refusal(&url.parse().expect("an address"));
        let (closed, open) = (reach(&[]), reach(&["10.0.0.0/8"]));
        for (url, of_closed, of_open) in [
            ("https://example.org/", None, None),
            ("http://example.org/", Some(Unreachable::Unencrypted), None),
            ("https://10.1.2.3/", Some(Unreachable::Special("a private address")), None),
            ("http://10.1.2.3/", Some(Unreachable::Special("a private address")), None),
            ("http://8.8.8.8/", Some(Unreachable::Unencrypted), Some(Unreachable::Unencrypted)),
            (
                "http://2130706433/",
                Some(Unreachable::Special("a loopback address")),
                Some(Unreachable::Special("a loopback address")),
            ),
            (
                "https://[::ffff:7f00:1]/",
                Some(Unreachable::Special("a loopback address")),
                Some(Unreachable::Special("a loopback address")),
            ),
        ] {
            assert_eq!((refusal(&closed, url), refusal(&open, url)), (of_closed, of_open), "{url}");
        }
    }

    /// The standard library's own words for some of the kinds.
    fn clearly_not_public(address: Ipv4Addr) -> bool {
        address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_broadcast()
            || address.is_documentation()
            || address.is_unspecified()
            || address.is_multicast()
    }

    proptest! {
        #[test]
        fn no_disguise_changes_the_verdict(bits: u32) {
            let plain = Ipv4Addr::from_bits(bits);
            let verdict = special(IpAddr::V4(plain));
            prop_assert!(!clearly_not_public(plain) || verdict.is_some());
            let [a, b, c, d] = plain.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            prop_assert_eq!(special(IpAddr::V6(plain.to_ipv6_mapped())), verdict);
            prop_assert_eq!(special(IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low))), verdict);
            for disguised in [
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low),
                Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            ] {
                prop_assert!(special(IpAddr::V6(disguised)).is_some(), "{disguised}");
            }
        }

        #[test]
        fn within_a_special_block_nothing_is_public(block in 0..SPECIAL_V4.len(), bits: u32) {
            let (network, what) = SPECIAL_V4[block];
            let host = bits & !u32::from(network.netmask());
            let address = Ipv4Addr::from_bits(u32::from(network.network()) | host);
            prop_assert_eq!(special(IpAddr::V4(address)), Some(what));
        }

        #[test]
        fn outside_of_the_public_part_nothing_is_public(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            let leads_elsewhere = NAT64.contains(&address) || address.to_ipv4_mapped().is_some();
            prop_assume!(!GLOBAL_V6.contains(&address) && !leads_elsewhere);
            prop_assert!(special(IpAddr::V6(address)).is_some(), "{address}");
        }
    }
}
