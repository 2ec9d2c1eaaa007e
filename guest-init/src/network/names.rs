//! The names that programs have looked up, each with an address that represents it and the listeners at that address.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use box_contract::network::PREFIX;
use box_contract::rules::MAX_PORTS;

use super::dns::KEEP;

/// The greatest number of names that have an address. A further name replaces the name that was looked up least
/// recently.
const MAX_NAMES: usize = 256;
/// The number of the first address for names in the component's network. The address with the number 1 is the
/// component's: its proxies and its resolver listen there.
const FIRST: u32 = 2;

/// The names that a component's programs have looked up.
#[derive(Debug)]
pub(super) struct Names {
    /// The component's address.
    own: Ipv4Addr,
    /// The number of the next address for a name.
    next: u32,
    names: BTreeMap<String, Name>,
}

/// An allowed name, with its address and its listeners.
#[derive(Debug)]
pub(super) struct Name {
    address: Ipv4Addr,
    listeners: Vec<(u16, TcpListener)>,
    /// When the host last allowed the name.
    allowed: Instant,
    /// When a program last looked up the name.
    asked: Instant,
}

impl Names {
    /// Returns an empty list for the component with this address.
    pub(super) const fn new(own: Ipv4Addr) -> Self {
        Self { own, next: FIRST, names: BTreeMap::new() }
    }

    /// Returns the address of a name, if the host has allowed the name within the last [`KEEP`] seconds.
    pub(super) fn known(&mut self, name: &str, now: Instant) -> Option<Ipv4Addr> {
        let known = self.names.get_mut(name)?;
        let age = now.saturating_duration_since(known.allowed);
        known.asked = now;
        (age < Duration::from_secs(KEEP.into())).then_some(known.address)
    }

    /// Gives a name an address and listens there on `ports`. Returns the address. Skips a port on which a program
    /// already listens at all addresses.
    pub(super) fn allow(&mut self, name: &str, ports: &[u16], now: Instant) -> Ipv4Addr {
        let old = self.names.remove(name);
        let (address, mut listeners) =
            old.map_or_else(|| (self.next_address(), Vec::new()), |it| (it.address, it.listeners));
        let ports = &ports[..ports.len().min(MAX_PORTS)];
        listeners.retain(|(port, _)| ports.contains(port));
        for port in ports {
            if !listeners.iter().any(|(own, _)| own == port)
                && let Ok(listener) = listen((address, *port))
            {
                listeners.push((*port, listener));
            }
        }
        self.forget_oldest();
        self.names.insert(name.to_owned(), Name { address, listeners, allowed: now, asked: now });
        address
    }

    /// Forgets a denied name, and closes its listeners.
    pub(super) fn deny(&mut self, name: &str) {
        self.names.remove(name);
    }

    /// Returns all listeners, with their names and ports.
    pub(super) fn listeners(&self) -> impl Iterator<Item = (&str, u16, &TcpListener)> {
        self.names.iter().flat_map(|(name, it)| {
            it.listeners.iter().map(|(port, listener)| (name.as_str(), *port, listener))
        })
    }

    /// Returns an unused address. An address is reused only after all others, so that a program which has kept it does
    /// not reach another name.
    fn next_address(&mut self) -> Ipv4Addr {
        let taken: Vec<_> = self.names.values().map(|it| it.address).collect();
        let width = 32 - u32::from(PREFIX);
        let network = self.own.to_bits() >> width << width;
        loop {
            let address = Ipv4Addr::from_bits(network | self.next);
            // Skips the network's address, the component's and the broadcast address.
            self.next = if self.next + 2 < 1 << width { self.next + 1 } else { FIRST };
            if !taken.contains(&address) {
                return address;
            }
        }
    }

    fn forget_oldest(&mut self) {
        while self.names.len() >= MAX_NAMES {
            let oldest = self.names.iter().min_by_key(|(_, it)| it.asked);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else { return };
            self.names.remove(&name);
        }
    }
}

fn listen(at: (Ipv4Addr, u16)) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names with addresses in a part of loopback in which tests can listen.
    fn names() -> Names {
        Names::new(Ipv4Addr::new(127, 77, 0, 1))
    }

    /// Returns a port that is free, at least at one address.
    fn free_port() -> u16 {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn each_name_has_its_address_and_keeps_it() {
        let (mut names, now, port) = (names(), Instant::now(), free_port());
        assert_eq!(names.known("a.example", now), None);
        let first = names.allow("a.example", &[port], now);
        assert_eq!(first, Ipv4Addr::new(127, 77, 0, 2));
        assert_eq!(names.allow("b.example", &[port], now), Ipv4Addr::new(127, 77, 0, 3));
        assert_eq!(names.allow("a.example", &[port], now), first);
        assert_eq!(names.known("a.example", now), Some(first));
        let later = now + Duration::from_secs(KEEP.into());
        assert_eq!(names.known("a.example", later), None, "the host is asked again");
        let at: Vec<_> = names.listeners().map(|it| (it.0, it.1)).collect();
        assert_eq!(at, [("a.example", port), ("b.example", port)]);
        assert!(std::net::TcpStream::connect((first, port)).is_ok());
        names.deny("a.example");
        assert_eq!(names.listeners().count(), 1);
        assert!(std::net::TcpStream::connect((first, port)).is_err());
    }

    #[test]
    fn ports_come_and_go() {
        let (mut names, now) = (names(), Instant::now());
        let [one, two] = [free_port(), free_port()];
        let ports = |names: &Names| names.listeners().map(|it| it.1).collect::<Vec<_>>();
        names.allow("a.example", &[one], now);
        names.allow("a.example", &[one, two], now);
        assert_eq!(ports(&names), [one, two]);
        names.allow("a.example", &[two], now);
        assert_eq!(ports(&names), [two]);
        let many: Vec<_> = (1..=64).map(|_| free_port()).collect();
        names.allow("a.example", &many, now);
        assert!(ports(&names).len() <= MAX_PORTS);
    }

    #[test]
    fn the_name_that_was_asked_for_least_recently_goes_and_its_address_is_not_used_soon() {
        let (mut names, start) = (names(), Instant::now());
        let at = |i: usize| start + Duration::from_millis(u64::try_from(i).unwrap());
        for i in 0..MAX_NAMES {
            names.allow(&format!("{i}.example"), &[], at(i));
        }
        names.known("0.example", at(MAX_NAMES));
        let new = names.allow("new.example", &[], at(MAX_NAMES + 1));
        assert_eq!(names.names.len(), MAX_NAMES);
        assert!(names.names.contains_key("0.example"));
        assert!(!names.names.contains_key("1.example"));
        assert_eq!(new.to_bits() & 0xffff, FIRST + u32::try_from(MAX_NAMES).unwrap());
        names.next = 0xfffe;
        assert_eq!(names.allow("last.example", &[], start).octets()[2..], [255, 254]);
        let again = names.allow("again.example", &[], start).to_bits() & 0xffff;
        assert_eq!(again, FIRST + 1, "the first that is free again");
    }
}
