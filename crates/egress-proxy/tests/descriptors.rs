//! Checks what the filter decides when this process has no free descriptors. The test is a separate process, so that its limit
//! applies to no other test.

use std::net::IpAddr;

use egress_proxy::is_own;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn without_free_descriptors_each_address_needs_consent() {
    let addresses: [IpAddr; 2] =
        [[198, 51, 100, 7].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 7].into()];
    for address in addresses {
        assert!(!is_own(address), "{address}");
    }
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
    let answers = addresses.map(is_own);
    setrlimit(Resource::Nofile, limit).unwrap();
    assert_eq!(answers, [true; 2]);
}
