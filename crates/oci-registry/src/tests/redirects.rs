//! Redirects to other servers, back again, and to forbidden addresses.

use test_server::{Request, Server};

use super::harness::{fails, is, succeeds};
use super::stage::{Plan, unauthorized};
use super::*;

/// Starts another server that has the layer.
fn foreign(identity: Identity) -> Server {
    Server::start(identity, |_| |_: &Request| file(b"the layer's bytes"))
}

/// Plans a registry that redirects to another server for the layer.
fn layer_at(identity: Identity, foreign: Server, path: &str) -> Plan {
    let to = foreign.url(path);
    let path = Image::with(|_| ()).layer_path();
    let plan = Plan { identity, foreign: vec![foreign], ..Plan::new() };
    plan.at(&path, move |_| Some(redirect(&to)))
}

/// Plans a registry that redirects to any URL for the layer.
fn layer_to(to: &'static str) -> Plan {
    Plan::new().at(&Image::with(|_| ()).layer_path(), move |_| Some(redirect(to)))
}

/// Plans a registry that redirects to another server for the layer, which redirects back.
fn there_and_back(answer: fn() -> Reply) -> Plan {
    let foreign = Server::start(Identity::None, |_| {
        |request: &Request| {
            let back = request.path().split('?').nth(1).unwrap();
            redirect(&format!("http://{back}/v2/app/back"))
        }
    });
    let to = foreign.url("/hop");
    let path = Image::with(|_| ()).layer_path();
    let plan = Plan { foreign: vec![foreign], ..Plan::new() };
    plan.deed(move |at, _, request| match at {
        "/v2/app/back" => Some(answer()),
        _ if at == path => Some(redirect(&format!("{to}?{}", request.header("host").unwrap()))),
        _ => None,
    })
}

/// Returns the `Authorization` headers of the requests that were redirected back to the registry.
fn came_back(stage: &Stage) -> Vec<Option<String>> {
    let requests = stage.registry.requests();
    let back = requests.iter().filter(|request| request.path() == "/v2/app/back");
    back.map(|request| request.header("authorization").map(str::to_owned)).collect()
}

/// Returns how many requests the other servers got.
fn seen(stage: &Stage) -> usize {
    stage.foreign.iter().map(|server| server.requests().len()).sum()
}

cases! {
    a_redirect_to_another_server: layer_at(Identity::None, foreign(Identity::None), "/layer?signed")
        => |outcome, stage| outcome.is_ok() && seen(stage) == 1;
    a_redirect_from_https_to_https: layer_at(Identity::Valid, foreign(Identity::Valid), "/layer")
        => |outcome, stage| outcome.is_ok() && seen(stage) == 1;
    a_redirect_from_http_to_https: layer_at(Identity::None, foreign(Identity::Valid), "/layer")
        => |outcome, stage| outcome.is_ok() && seen(stage) == 1;
    a_redirect_from_https_to_http: layer_at(Identity::Valid, foreign(Identity::None), "/layer")
        => |outcome, stage| {
        seen(stage) == 0 && is!(outcome, RegistryError::Download(DownloadError::Downgrade { .. }))
    };
    a_redirect_there_and_back: there_and_back(|| file(b"the layer's bytes"))
        => |outcome, stage| outcome.is_ok() && came_back(stage) == [None];
    a_redirect_there_and_back_to_a_locked_door: {
        there_and_back(|| unauthorized("Basic realm=\"reg\""))
    } => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Status { transient: false, .. }))
            && came_back(stage) == [None]
    };
    a_redirect_to_who_asks_for_a_password: {
        let asks = |_: &Request| unauthorized("Basic realm=\"please\"");
        layer_at(Identity::None, Server::start(Identity::None, |_| asks), "/layer")
    } => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Status { transient: false, .. }))
            && seen(stage) == 1
    };
    a_redirect_to_who_asks_for_a_token: {
        let foreign = Server::start(Identity::None, |port| {
            let challenge = format!("Bearer realm=\"http://127.0.0.1:{port}/token\"");
            move |_: &Request| unauthorized(&challenge)
        });
        layer_at(Identity::None, foreign, "/layer")
    } => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Status { transient: false, .. }))
            && seen(stage) == 1
    };
    a_redirect_of_the_manifest: {
        let image = Image::with(|_| ());
        let manifest = image.manifest.clone();
        let has = move |_: &Request| stage::manifest(&manifest);
        let foreign = Server::start(Identity::None, |_| has);
        let to = foreign.url("/manifest");
        let plan = Plan { image, foreign: vec![foreign], ..Plan::new() };
        plan.at("/v2/app/manifests/v1", move |_| Some(redirect(&to)))
    } => succeeds;
    a_redirect_on_the_same_server: {
        let path = Image::with(|_| ()).layer_path();
        Plan::new().deed(move |at, _, _| match at {
            "/v2/app/elsewhere" => Some(file(b"the layer's bytes")),
            _ => (at == path).then(|| redirect("/v2/app/elsewhere")),
        })
    } => succeeds;
    a_redirect_without_an_end: layer_to("?again")
        => fails!(RegistryError::Download(DownloadError::Redirect { how, .. }) if how == "more than 5 times");
    a_redirect_to_a_file: layer_to("file:///etc/passwd") => fails!(RegistryError::Download(DownloadError::Redirect { how, .. }) if how.contains("which is not followed"));
    a_redirect_with_a_password: layer_to("http://me:canary-token@127.0.0.1:1/canary-token")
        => fails!(RegistryError::Download(DownloadError::Redirect { how, .. }) if how.contains("which is not followed"));
    a_redirect_to_the_metadata_of_a_cloud: layer_to("http://169.254.169.254/latest/meta-data/")
        => fails!(RegistryError::Download(DownloadError::Redirect { how, .. }) if how.contains("link-local"));
    a_redirect_that_repeats_the_token: layer_to("http://[canary-token/canary-token")
        => fails!(RegistryError::Download(DownloadError::Redirect { how, .. }) if how.contains("which is not followed"));
    a_redirect_to_nowhere: Plan::new().at(&Image::with(|_| ()).layer_path(), |_| {
        Some(reply("302 Found", &["Content-Length: 0"], b""))
    }) => fails!(RegistryError::Download(DownloadError::Status { transient: false, .. }));
}
