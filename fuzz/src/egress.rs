//! Targets for the bytes that a box sends to its network filter.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use box_contract::{ComponentName, NetworkLimits, NetworkPlan};
use egress_proxy::{ClientKind, Decision, Filter, Resolver, Verdict};
use egress_rules::{Rules, Target, first, hello};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

/// Addresses that a box can connect to only if its user names them.
const SPECIAL: [&str; 4] = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "64:ff9b::7f00:1"];

thread_local! {
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_all().build().expect("a runtime"));
}

/// Parses the bytes as the first bytes of a client. Further bytes must not change a decision, and a client must not be accepted
/// for two servers.
pub fn first_bytes(bytes: &[u8]) {
    let [good, other] =
        ["good.example:443", "other.example:443"].map(|it| Target::parse(it).expect("a target"));
    for read in [hello::read, first::read] {
        let whole = read(bytes, &good);
        for cut in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
            let begun = read(&bytes[..cut], &good);
            assert!(begun == Ok(false) || begun == whole, "{cut}: {begun:?} {whole:?}");
        }
    }
    let is_served = |target| hello::read(bytes, target) == Ok(true);
    assert!(!is_served(&good) || !is_served(&other));
}

/// Sends all bytes but the first to a filter, as a client of the kind that the first byte selects. Every name resolves to
/// forbidden addresses, so no connection may be allowed.
pub fn proxy(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let way = match kind % 3 {
        0 => ClientKind::Http,
        1 => ClientKind::Socks,
        _ => ClientKind::Direct(Target::parse("good.example:80").expect("a target")),
    };
    let decisions = Arc::<Mutex<Vec<Decision>>>::default();
    let reported = Arc::clone(&decisions);
    let tell = move |decision| reported.lock().expect("nobody panics").push(decision);
    let filter = Filter::new(rules(), NetworkLimits::default(), resolver(), tell);
    RUNTIME.with_borrow_mut(|runtime| runtime.block_on(serve(filter, way, bytes.to_vec())));
    for decision in decisions.lock().expect("nobody panics").iter() {
        assert_ne!(decision.verdict, Verdict::Allowed);
        let host = decision.host.as_deref().unwrap_or_default();
        assert!(host.len() <= 253 && host.bytes().all(|byte| byte.is_ascii_graphic()), "{host:?}");
    }
}

fn rules() -> Rules {
    let plan = r#"{"mode":"filtered","allow":[{"peer":"good.example"},{"peer":"*.wild.example"}]}"#;
    let plan: NetworkPlan = serde_json::from_str(plan).expect("a plan");
    Rules::try_from(&plan).expect("rules")
}

fn resolver() -> Resolver {
    let found: Vec<IpAddr> = SPECIAL.iter().map(|it| it.parse().expect("an address")).collect();
    Resolver::new(move |_| {
        let found = found.clone();
        async move { Ok(found) }
    })
}

async fn serve(filter: Arc<Filter>, way: ClientKind, bytes: Vec<u8>) {
    let (mut client, stream) = duplex(64 << 10);
    let served = filter.serve(ComponentName::Agent, way, stream);
    let asked = async {
        // The filter may refuse the client before it has read all bytes.
        let _refused = client.write_all(&bytes).await;
        let _gone = client.shutdown().await;
        let mut answer = Vec::new();
        let _end = client.read_to_end(&mut answer).await;
    };
    tokio::join!(served, asked);
}
