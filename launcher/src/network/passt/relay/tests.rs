use box_contract::network::SHARED_GUEST;

use super::*;

const FAR: [u8; 4] = [192, 0, 2, 1];

/// Returns an IPv4 frame between two addresses and ports.
fn between(from: ([u8; 4], u16), to: ([u8; 4], u16), protocol: u8) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + 28];
    frame[12..14].copy_from_slice(&IPV4);
    frame[ETHERNET] = 0x45;
    frame[ETHERNET + 9] = protocol;
    frame[ETHERNET + 12..ETHERNET + 16].copy_from_slice(&from.0);
    frame[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&to.0);
    frame[ETHERNET + 20..ETHERNET + 22].copy_from_slice(&from.1.to_be_bytes());
    frame[ETHERNET + 22..ETHERNET + 24].copy_from_slice(&to.1.to_be_bytes());
    frame
}

/// Returns an IPv4 frame from the guest's port 5000 to another address and port.
fn packet(to: [u8; 4], protocol: u8, port: u16) -> Vec<u8> {
    between((SHARED_GUEST.octets(), 5000), (to, port), protocol)
}

fn leaves(frame: &[u8]) -> bool {
    may_leave(frame, &Flows::default(), true)
}

fn framed(frames: &[&[u8]]) -> Vec<u8> {
    let one =
        |frame: &&[u8]| [&u32::try_from(frame.len()).unwrap().to_be_bytes()[..], frame].concat();
    frames.iter().flat_map(one).collect()
}

/// A writer that stores the bytes of each write separately.
#[derive(Debug, Default)]
struct Writes(Vec<Vec<u8>>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader of the bytes that reads at most the given number at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(buffer.len());
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn only_other_hosts_and_the_resolver_are_reached() {
    for to in [FAR, [10, 0, 2, 2], [1, 1, 1, 1], [223, 255, 255, 255], [128, 0, 0, 1]] {
        assert!(leaves(&packet(to, TCP, 80)), "{to:?}");
    }
    for to in [
        [127, 0, 0, 1],
        [127, 255, 255, 254],
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [224, 0, 0, 251],
        [255, 255, 255, 255],
        [198, 19, 255, 1],
        [198, 19, 255, 2],
        [198, 19, 255, 53],
    ] {
        assert!(!leaves(&packet(to, TCP, 80)), "{to:?}");
        assert!(!leaves(&packet(to, ICMP, 53)), "{to:?}");
    }
    let resolver = SHARED_RESOLVER.octets();
    assert!(leaves(&packet(resolver, UDP, 53)));
    assert!(!leaves(&packet(resolver, TCP, 53)), "passt would send it to that address itself");
    assert!(!leaves(&packet(SHARED_GATEWAY.octets(), UDP, 53)));
}

#[test]
fn without_a_resolver_of_the_host_there_is_none() {
    let question = packet(SHARED_RESOLVER.octets(), UDP, 53);
    assert!(!may_leave(&question, &Flows::default(), false), "passt would send it to 127.0.0.1");
    assert!(may_leave(&packet(FAR, UDP, 53), &Flows::default(), false));
}

#[test]
fn the_port_is_where_the_header_says() {
    let mut frame = packet(SHARED_RESOLVER.octets(), UDP, 53);
    frame[ETHERNET] = 0x46;
    assert!(!leaves(&frame), "these are bytes of an option");
    frame[ETHERNET] = 0x4f;
    assert!(!leaves(&frame), "there is no port");
}

#[test]
fn what_is_neither_ipv4_nor_its_question_is_dropped() {
    let mut frame = packet([1, 1, 1, 1], TCP, 80);
    for kind in [[0x86, 0xdd], [0x81, 0x00], [0x88, 0xa8], [0, 0]] {
        frame[12..14].copy_from_slice(&kind);
        assert!(!leaves(&frame) && !may_enter(&frame, &Flows::default()), "{kind:?}");
    }
    for length in 0..ETHERNET + 20 {
        assert!(!leaves(&packet([1, 1, 1, 1], TCP, 80)[..length]), "{length}");
    }
    let asked = question([2; 6], SHARED_RESOLVER, SHARED_GATEWAY);
    assert_eq!(asked.len(), LENGTH + 42);
    assert!(leaves(&asked[LENGTH..]) && may_enter(&asked[LENGTH..], &Flows::default()));
}

#[test]
fn a_datagram_enters_only_as_an_answer() {
    let flows = Flows::default();
    let own = SHARED_GUEST.octets();
    let enters = |from, to: u16, protocol| may_enter(&between(from, (own, to), protocol), &flows);
    assert!(!enters((FAR, 53), 5000, UDP));
    assert!(may_leave(&packet(FAR, UDP, 53), &flows, true));
    assert!(enters((FAR, 53), 5000, UDP));
    assert!(!enters((FAR, 54), 5000, UDP) && !enters((FAR, 53), 5001, UDP));
    assert!(!enters(([192, 0, 2, 2], 53), 5000, UDP), "it was not asked");
    assert!(enters((FAR, 80), 5000, TCP) && enters((FAR, 0), 0, ICMP));
    assert!(!enters((FAR, 0), 0, 132), "this protocol is none that leaves");
    let gateway = SHARED_GATEWAY.octets();
    for protocol in [TCP, UDP, ICMP] {
        assert!(!enters((gateway, 53), 5000, protocol), "it is the host's loopback");
    }
    for port in 0..=u16::try_from(MAX_FLOWS).unwrap() {
        assert!(may_leave(&packet([1, 1, 1, 1], UDP, port), &flows, true));
    }
    assert!(!enters((FAR, 53), 5000, UDP), "it is long ago");
    assert!(flows.0.lock().unwrap().flows.len() == MAX_FLOWS);
}

#[test]
fn each_frame_is_written_by_itself_however_it_came() {
    let (good, bad) = (packet([1, 1, 1, 1], TCP, 80), packet([127, 0, 0, 1], TCP, 80));
    let mut long = good.clone();
    long.resize(MAX_FRAME + 1, 7);
    let mut longest = good.clone();
    longest.resize(MAX_FRAME, 7);
    let sent = framed(&[&bad, &good, &[], &bad, &longest, &long, &good, &bad]);
    let expected = [framed(&[&good]), framed(&[&longest]), framed(&[&good])];
    for size in [1, 3, 50, sent.len()] {
        let mut written = Writes::default();
        to_host(Pieces(&sent, size), &mut written, &Flows::default(), true).unwrap();
        assert_eq!(written.0, expected, "{size}");
        let (sender, waiting) = queue();
        to_guest(Pieces(&sent, size), &sender, &Flows::default()).unwrap();
        drop(sender);
        let mut delivered = Writes::default();
        deliver(&waiting, &mut delivered).unwrap();
        // In this direction the destination address is not checked, because passt sets it.
        let expected: Vec<_> =
            [&bad, &good, &bad, &longest, &good, &bad].map(|it| framed(&[it])).into();
        assert_eq!(delivered.0, expected, "{size}");
    }
}

#[test]
fn a_length_that_cannot_be_ends_it() {
    let mut sent = framed(&[&packet(FAR, TCP, 80)]);
    sent.extend(u32::try_from(MAX_LEN + 1).unwrap().to_be_bytes());
    let mut written = Writes::default();
    let ended = to_host(&*sent, &mut written, &Flows::default(), true);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(written.0.len(), 1);
}

#[test]
fn a_guest_that_takes_nothing_holds_nobody_up() {
    let one = framed(&[&packet(FAR, TCP, 80)]);
    let sent = one.repeat(MAX_WAITING + 10);
    let (sender, waiting) = queue();
    to_guest(&*sent, &sender, &Flows::default()).unwrap();
    drop(sender);
    assert_eq!(waiting.iter().count(), MAX_WAITING);
}
