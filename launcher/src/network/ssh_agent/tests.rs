use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use egress_proxy::ssh_agent::fingerprint;
use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::*;

/// A public key, and its fingerprint as `ssh-keygen -l` prints it.
const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIBfMxKZk3v4FC8t3Uqava+oW8lpnxL3CSat5kPVOBihe";
const FINGERPRINT: &str = "SHA256:gslYxeImxk1nCLHuh2leEiGWRgDynApfJnYq6XFVVqU";
/// More than the bytes of a test.
const ENOUGH: usize = 4 << 20;

fn key() -> Vec<u8> {
    BASE64_STANDARD.decode(KEY).unwrap()
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_be_bytes()
}

fn string(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    [&number(bytes.as_ref().len())[..], bytes.as_ref()].concat()
}

fn strings(all: &[&[u8]]) -> Vec<u8> {
    all.iter().flat_map(string).collect()
}

fn message(kind: u8, fields: &[u8]) -> Vec<u8> {
    [&number(fields.len() + 1)[..], &[kind], fields].concat()
}

fn sign(key: &[u8], data: &[u8]) -> Vec<u8> {
    message(13, &[strings(&[key, data]), number(0).to_vec()].concat())
}

/// Returns what a client signs for a login.
fn login(user: &str, method: &str, keys: &[&[u8]]) -> Vec<u8> {
    let names = strings(&[user.as_bytes(), b"ssh-connection", method.as_bytes()]);
    [string("session"), vec![50], names, vec![1], strings(keys)].concat()
}

/// Returns the agent's usual answer to a message of this kind: one key, or a signature.
fn answer(kind: u8) -> Vec<u8> {
    match kind {
        11 => message(12, &[number(1).to_vec(), strings(&[&key(), b"comment"])].concat()),
        _ => message(14, &string("signature")),
    }
}

/// The results of a connection.
#[derive(Debug, Default)]
struct Exchange {
    /// What the program has received.
    program: Vec<u8>,
    /// What the agent has received.
    agent: Vec<u8>,
    decisions: Vec<Decision>,
}

impl Exchange {
    /// Sends `sent` from a program to an agent, in pieces of these lengths, and ends the connection.
    fn run(sent: &[u8], pieces: &[usize], answer: impl Fn(u8) -> Vec<u8>) -> Self {
        let (program, guest) = duplex(ENOUGH);
        let (host, agent) = duplex(ENOUGH);
        let (pace, decisions) = (Mutex::new(pace()), Mutex::new(Vec::new()));
        let note = |it: &Decision| decisions.lock().unwrap().push(it.clone());
        let (component, lists) = (ComponentName::Agent, &pace);
        let signatures = Signatures { component, pace: &pace, lists, note: &note };
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let (program, agent, ()) = runtime.block_on(async {
            tokio::join!(
                ask(program, sent, pieces),
                serve_as_agent(agent, answer),
                serve(guest, host, &signatures)
            )
        });
        Self { program, agent, decisions: decisions.into_inner().unwrap() }
    }

    /// Returns the decisions as text, without the numbers of bytes.
    fn shown(&self) -> Vec<String> {
        let shown = self.decisions.iter().map(ToString::to_string);
        shown.map(|it| it.split(',').next().unwrap_or_default().to_owned()).collect()
    }
}

fn pace() -> Pace {
    Pace::new(1_000_000, Instant::now())
}

/// Returns what a program receives that sends `sent` in pieces.
async fn ask(mut program: DuplexStream, sent: &[u8], pieces: &[usize]) -> Vec<u8> {
    let (mut rest, mut lengths) = (sent, pieces.iter().cycle());
    while !rest.is_empty() {
        let (piece, more) =
            rest.split_at(lengths.next().map_or(rest.len(), |it| (*it).min(rest.len())));
        rest = more;
        // The filter may have hung up.
        drop(program.write_all(piece).await);
        tokio::task::yield_now().await;
    }
    drop(program.shutdown().await);
    let mut received = Vec::new();
    program.read_to_end(&mut received).await.unwrap();
    received
}

/// Answers each message that an agent receives. Returns all that it has received.
async fn serve_as_agent(mut agent: DuplexStream, answer: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
    let (mut received, mut messages, mut chunk) = (Vec::new(), Messages::default(), [0; 999]);
    while let Ok(length @ 1..) = agent.read(&mut chunk).await {
        received.extend_from_slice(&chunk[..length]);
        messages.push(&chunk[..length]);
        while let Ok(Some(message)) = messages.take() {
            drop(agent.write_all(&answer(message.bytes()[4])).await);
        }
    }
    received
}

#[test]
fn keys_are_listed_and_sign_and_nothing_else_reaches_the_agent() {
    let data = login("git", "publickey", &[b"ssh-ed25519", &key()]);
    let (list, sign) = (message(11, b""), sign(&key(), &data));
    let bind = message(27, &string("session-bind@openssh.com"));
    let add = message(17, &strings(&[b"ssh-ed25519", b"public", b"secret"]));
    let remove = message(19, b"");
    let sent = [&list[..], &bind, &add, &sign, &remove, &list].concat();
    let exchange = Exchange::run(&sent, &[], answer);
    assert_eq!(exchange.agent, [&list[..], &sign, &list].concat());
    let refusal = [0, 0, 0, 1, 5].to_vec();
    let (keys, signature) = (answer(11), answer(13));
    let expected = [keys.clone(), refusal.clone(), refusal.clone(), signature, refusal, keys];
    assert_eq!(exchange.program, expected.concat());
    let [decision] = exchange.decisions.as_slice() else { panic!("{exchange:?}") };
    assert_eq!((decision.component, decision.way), (ComponentName::Agent, Channel::SshAgent));
    assert_eq!(decision.host.as_deref(), Some(FINGERPRINT));
    assert_eq!(decision.purpose.as_deref(), Some("login as git"));
    assert_eq!(decision.verdict, Verdict::Allowed);
    assert_eq!((decision.sent, decision.received), (sign.len() as u64, answer(13).len() as u64));
}

#[test]
fn what_is_signed_is_named_if_it_is_known() {
    let git = [b"SSHSIG".to_vec(), strings(&[b"git", b"", b"sha512", b"hash"])].concat();
    let keys: [&[u8]; 3] = [b"ssh-ed25519", &key(), b"server"];
    let bound = "publickey-hostbound-v00@openssh.com";
    let with = |change: fn(&mut Vec<u8>)| {
        let mut data = login("git", "publickey", &keys[..2]);
        change(&mut data);
        data
    };
    for (data, purpose) in [
        (login("git", "publickey", &keys[..2]), "login as git"),
        (login("git", bound, &keys), "login as git"),
        (login("j\u{f6}rg\u{1b}[2J", "publickey", &keys[..2]), "login as j?rg?[2J"),
        (git, "signature for git"),
        ([b"SSHSIG".to_vec(), string("a\nb")].concat(), "unknown data"),
        ([b"SSHSIG".to_vec(), string("")].concat(), "unknown data"),
        (b"SSHSIG\0\0\0\x04git".to_vec(), "unknown data"),
        (login("", "publickey", &keys[..2]), "unknown data"),
        (login("git", "publickey", &keys), "unknown data"),
        (login("git", bound, &keys[..2]), "unknown data"),
        (login("git", "hostbased", &keys[..2]), "unknown data"),
        (with(|data| data.push(0)), "unknown data"),
        (with(|data| data.truncate(data.len() - 1)), "unknown data"),
        // The kind of another message.
        (with(|data| data[11] = 51), "unknown data"),
        (Vec::new(), "unknown data"),
        (vec![0xff; 40], "unknown data"),
    ] {
        let exchange = Exchange::run(&sign(&key(), &data), &[], answer);
        let expected = format!("{FINGERPRINT} ({purpose}) allowed");
        assert_eq!(exchange.shown(), [expected], "{data:?}");
    }
}

#[test]
fn a_certificate_has_the_fingerprint_of_its_key() {
    assert_eq!(fingerprint(&key()), FINGERPRINT);
    for (certificate, plain, fields) in [
        ("ssh-ed25519-cert-v01@openssh.com", "ssh-ed25519", 1),
        ("ssh-rsa-cert-v01@openssh.com", "ssh-rsa", 2),
        ("ecdsa-sha2-nistp256-cert-v01@openssh.com", "ecdsa-sha2-nistp256", 2),
        ("sk-ssh-ed25519-cert-v01@openssh.com", "sk-ssh-ed25519@openssh.com", 2),
        ("sk-ecdsa-sha2-nistp256-cert-v01@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", 3),
    ] {
        let all: [&[u8]; 3] = [b"one", b"two", b"three"];
        let key = strings(&all[..fields]);
        let names = strings(&[certificate.as_bytes(), b"nonce"]);
        let whole = [names.clone(), key.clone(), b"the rest".to_vec()].concat();
        assert_eq!(fingerprint(&whole), fingerprint(&[string(plain), key].concat()), "{plain}");
        assert_ne!(fingerprint(&names), fingerprint(&string(plain)), "it is cut off");
    }
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let list = message(11, b"");
    let (signed, long) = (sign(&key(), b"data"), vec![0; 256 << 10]);
    let cut = message(13, &signed[5..signed.len() - 1]);
    let more = message(13, &[&signed[5..], b"x"].concat());
    for (name, wrong) in [
        ("no kind", number(0).to_vec()),
        ("too long", message(20, &long)),
        ("a far too long one that never comes", vec![0xff; 4]),
        ("a request without its end", cut),
        ("a request with another field", more),
        ("a request without fields", message(13, b"")),
        ("a key that is longer than the message", message(13, &[0xff; 8])),
        ("a list with a field", message(11, b"x")),
    ] {
        let exchange = Exchange::run(&[&list[..], &wrong, &list].concat(), &[], answer);
        assert_eq!(exchange.agent, list, "{name}");
        assert_eq!(exchange.program, answer(11), "{name}");
        assert_eq!(exchange.shown(), [""; 0], "{name}");
    }
    let longest = message(20, &long[1..]);
    let exchange = Exchange::run(&[longest, list.clone()].concat(), &[], answer);
    assert_eq!(exchange.agent, list, "the longest message is refused, and the next one passed on");
}

#[test]
fn an_answer_of_another_kind_ends_the_connection_and_a_refusal_does_not() {
    let sign = sign(&key(), b"data");
    let twice = [&sign[..], &sign].concat();
    let failed = |reason: &str| format!("{FINGERPRINT} (unknown data) failed: {reason}");
    let or_list = |kind: u8, other: Vec<u8>| if kind == 11 { answer(11) } else { other };
    let refused = Exchange::run(&twice, &[], |kind| or_list(kind, message(5, b"")));
    assert_eq!(refused.program, [message(5, b""), message(5, b"")].concat());
    assert_eq!(refused.shown(), [(); 2].map(|()| failed("the agent refuses to sign")));
    for kind in [6, 12, 13, 28] {
        let other = Exchange::run(&twice, &[], |asked| or_list(asked, message(kind, b"")));
        assert_eq!(other.agent, [message(11, b""), sign.clone()].concat(), "{kind}");
        assert!(other.program.is_empty(), "{kind}");
        assert_eq!(other.shown(), [failed("the agent's answer is of another kind")], "{kind}");
    }
    let long = Exchange::run(&twice, &[], |kind| or_list(kind, vec![0xff; 4]));
    assert_eq!(long.shown(), [failed("a message has more than 256 KiB")]);
    let list = Exchange::run(&message(11, b""), &[], |_| message(14, b""));
    assert!(list.program.is_empty());
}

/// Runs the filter between a program and an agent that the test controls, and returns the decisions.
fn controlled(
    pace: Pace,
    test: impl AsyncFnOnce(DuplexStream, DuplexStream, &Mutex<Vec<Decision>>),
) -> Vec<Decision> {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let (program, guest) = duplex(ENOUGH);
    let (host, agent) = duplex(ENOUGH);
    let (pace, decisions) = (Mutex::new(pace), Mutex::new(Vec::new()));
    let note = |it: &Decision| decisions.lock().unwrap().push(it.clone());
    let (component, lists) = (ComponentName::Business, Mutex::new(self::pace()));
    let signatures = Signatures { component, pace: &pace, lists: &lists, note: &note };
    runtime.block_on(async {
        let served = serve(guest, host, &signatures);
        tokio::select! {
            () = served => {}
            () = test(program, agent, &decisions) => {}
        }
    });
    decisions.into_inner().unwrap()
}

/// The user of the agent may take long to confirm a signature, or never do.
#[test]
fn a_signature_is_recorded_also_if_nobody_waits_for_it() {
    let sign = sign(&key(), b"data");
    let decisions = controlled(pace(), async |mut program, mut agent, decisions| {
        program.write_all(&sign).await.unwrap();
        let (mut list, mut got) = (message(11, b""), vec![0; sign.len()]);
        agent.read_exact(&mut list).await.unwrap();
        agent.write_all(&answer(11)).await.unwrap();
        agent.read_exact(&mut got).await.unwrap();
        assert!(decisions.lock().unwrap().is_empty(), "the agent has not answered");
    });
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    let expected = "the program has hung up before the agent has answered";
    assert_eq!(decision.verdict, Verdict::Failed { reason: expected.to_owned() });
    let decisions = controlled(pace(), async |mut program, agent, _| {
        drop(agent);
        program.write_all(&sign).await.unwrap();
        assert_eq!(program.read(&mut [0]).await.unwrap(), 0);
        std::future::pending::<()>().await;
    });
    assert!(matches!(decisions[0].verdict, Verdict::Failed { .. }), "{decisions:?}");
}

#[test]
fn a_signature_waits_for_its_turn() {
    let (list, sign) = (message(11, b""), sign(&key(), b"data"));
    let later = Instant::now() + Duration::from_secs(3600);
    let decisions = controlled(Pace::new(1, later), async |mut program, mut agent, _| {
        program.write_all(&[&list[..], &sign].concat()).await.unwrap();
        let (mut asked, mut answered) = (vec![0; list.len()], vec![0; answer(11).len()]);
        agent.read_exact(&mut asked).await.unwrap();
        agent.write_all(&answer(11)).await.unwrap();
        program.read_exact(&mut answered).await.unwrap();
        assert_eq!((asked, answered), (list.clone(), answer(11)), "a list does not wait");
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let more = timeout(Duration::ZERO, agent.read_u8()).await;
        assert!(more.is_err(), "{more:?}");
    });
    assert!(decisions.is_empty(), "{decisions:?}");
}

/// Agents read keys leniently: OpenSSH's signs with a key whose type is written in other letters. The log would have a fingerprint that no
/// list has.
#[test]
fn a_key_that_the_agent_does_not_list_signs_nothing() {
    let mut other = key();
    other[4..7].copy_from_slice(b"SSH");
    let (list, wanted) = (message(11, b""), sign(&other, b"data"));
    let exchange = Exchange::run(&[&wanted[..], &list, &wanted].concat(), &[], answer);
    assert_eq!(exchange.agent, [&list[..], &list, &list].concat());
    let refusal = message(5, b"");
    assert_eq!(exchange.program, [refusal.clone(), answer(11), refusal].concat());
    let expected = "failed: the agent does not list this key";
    assert!(exchange.shown().iter().all(|it| it.ends_with(expected)), "{exchange:?}");
    assert_eq!(exchange.decisions.len(), 2);
    // A list that ends too early has no further keys.
    let cut = |_| message(12, &number(9));
    assert_eq!(Exchange::run(&wanted, &[], cut).agent, list);
}

/// What becomes of a message of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Refused,
    List,
    Sign,
    /// A signature with a key that the agent does not list.
    Unknown,
}

/// A message of a program, and its fate. `None` if the message ends the connection.
type Sent = (Vec<u8>, Option<Fate>);

fn any_bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn any_message() -> impl Strategy<Value = Sent> {
    let known = |kind: &u8| ![11, 13].contains(kind);
    prop_oneof![
        3 => Just((message(11, b""), Some(Fate::List))),
        3 => any_bytes(40).prop_map(|data| (sign(&key(), &data), Some(Fate::Sign))),
        1 => (any_bytes(40), any_bytes(40))
            .prop_map(|(key, data)| (sign(&key, &data), Some(Fate::Unknown))),
        3 => (any::<u8>().prop_filter("a kind of its own", known), any_bytes(40))
            .prop_map(|(kind, fields)| (message(kind, &fields), Some(Fate::Refused))),
        1 => any_bytes(40).prop_filter("a field", |it| !it.is_empty())
            .prop_map(|fields| (message(11, &fields), None::<Fate>)),
        1 => (any_bytes(40), any_bytes(40), 1..9_usize).prop_map(|(key, data, cut)| {
            let whole = sign(&key, &data);
            (message(13, &whole[5..whole.len() - cut]), None::<Fate>)
        }),
        1 => Just((number(0).to_vec(), None::<Fate>)),
        1 => (0x4_0001..=u32::MAX).prop_map(|length| (length.to_be_bytes().to_vec(), None::<Fate>)),
    ]
}

/// Returns the messages in `bytes`, which has nothing else.
fn whole_messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((length, _)) = bytes.split_first_chunk::<4>() {
        let end = 4 + usize::try_from(u32::from_be_bytes(*length)).unwrap();
        let (message, rest) = bytes.split_at(end);
        all.push(message);
        bytes = rest;
    }
    assert!(bytes.is_empty(), "{bytes:?}");
    all
}

proptest! {
    /// However messages are cut into pieces, the agent gets those of the two kinds until one ends the connection, and the program gets
    /// one answer to each message before.
    #[test]
    fn the_agent_gets_the_messages_of_two_kinds(
        messages in prop::collection::vec(any_message(), 0..12),
        pieces in prop::collection::vec(1..60_usize, 0..8),
    ) {
        let sent: Vec<u8> = messages.iter().flat_map(|it| it.0.clone()).collect();
        let exchange = Exchange::run(&sent, &pieces, answer);
        let understood: Vec<_> =
            messages.iter().map_while(|(bytes, fate)| Some((bytes, (*fate)?))).collect();
        let (mut agent, mut has_list) = (Vec::new(), false);
        for (bytes, fate) in &understood {
            // The filter asks for the list itself if it has none, or none with the key.
            let asks = *fate == Fate::Unknown || (*fate == Fate::Sign && !has_list);
            agent.extend(asks.then(|| message(11, b"")).into_iter().flatten());
            has_list |= *fate != Fate::Refused;
            if matches!(fate, Fate::List | Fate::Sign) {
                agent.extend_from_slice(bytes);
            }
        }
        prop_assert_eq!(&exchange.agent, &agent);
        let answers = understood.iter().map(|(bytes, fate)| match fate {
            Fate::List | Fate::Sign => answer(bytes[4]),
            Fate::Refused | Fate::Unknown => message(5, b""),
        });
        prop_assert_eq!(&exchange.program, &answers.flatten().collect::<Vec<_>>());
        let is_signature = |fate: &Fate| matches!(fate, Fate::Sign | Fate::Unknown);
        let signed = understood.iter().filter(|it| is_signature(&it.1)).count();
        prop_assert_eq!(exchange.decisions.len(), signed);
    }

    /// Whatever a program sends, the agent gets nothing but whole messages of the two kinds, as the program has sent them.
    #[test]
    fn no_bytes_reach_the_agent_but_whole_messages(
        sent in prop_oneof![
            any_bytes(400),
            // Bytes that often are lengths and kinds.
            prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1, 5, 11, 13, 17]), 0..400),
        ],
        pieces in prop::collection::vec(1..60_usize, 0..8),
    ) {
        let exchange = Exchange::run(&sent, &pieces, answer);
        let mut rest = &sent[..];
        let list = message(11, b"");
        // The filter asks for the list itself.
        for message in whole_messages(&exchange.agent).into_iter().filter(|it| *it != list) {
            prop_assert!([11, 13].contains(&message[4]), "{message:?}");
            let at = rest.windows(message.len()).position(|it| it == message);
            prop_assert!(at.is_some(), "{message:?} was not sent");
            rest = &rest[at.unwrap_or_default() + message.len()..];
        }
    }
}
