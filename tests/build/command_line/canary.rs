//! Tests that no message repeats a secret that a user has put by mistake into a Boxfile, a file of variables, a configuration
//! of registries or a file of credentials.

use std::process::Command;
use std::thread;

use crate::checkout::{BOXFILE, Checkout};

/// A value that is recognizable as a token, and one that could be any word.
const TOKEN: &str = "ghp_canary0123456789abcdefghij";
const WORD: &str = "canary";
/// The commands that read a Boxfile and the files that it refers to.
const COMMANDS: [&[&str]; 5] =
    [&["check"], &["check", "--json"], &["plan", "--json"], &["build"], &["build", "--json"]];

/// Boxfiles. `*` is replaced by `TOKEN`.
const BOXFILES: [&str; 28] = [
    "box \"t\"\nagent { image \"oci:x\"; env GITHUB_TOKEN=\"*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; env A=\"*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; env GITHUB_TOKEN \"*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; env \"GITHUB_TOKEN=*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; env GITHUB_TOKEN=*; }",
    "box \"t\"\nagent { image \"oci:x\"; env { GITHUB_TOKEN \"*\"; }; }",
    "box \"t\"\nagent { image \"oci:x\"; env TOKEN=\"*\" TOKEN=\"*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; env TOKEN=\"\\q*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; env TOKEN=\"*\n",
    "box \"t\"\nagent { image \"oci:x\"; enf TOKEN=\"*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; plain-env TOKEN *; }",
    "box \"t\"\nagent { image \"oci:x\"\n GITHUB_TOKEN = *\n}",
    "box \"t\"\nagent { image \"oci:x\"\n GITHUB_TOKEN=\"*\"\n}",
    "box \"t\"\nagent { image \"oci:x\"; entrypoint \"/a\" \"--token=*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; entrypoint \"/a\" \"--token\" \"*\" bad=#true; }",
    "box \"t\"\nagent { image \"oci:x\"; user \"*\"; workdir \"*\"; health \"*\"; }",
    "box \"t\"\nagent { image \"oci:x\"; label \"TOKEN\" \"*\"; labels TOKEN=\"*\"; }",
    "box \"t\"\nagent { image \"docker://user:*@registry.example.org/x\"; }",
    "box \"t\"\nagent { image \"docker://*@registry.example.org/x\"; }",
    "box \"t\"\nagent { image \"https://user:*@registry.example.org/x\"; }",
    "box \"t\"\nagent { image \"oci:x\"; }\nsecret \"API_KEY\" value=\"*\"",
    "box \"t\"\nagent { image \"oci:x\"; }\nsecret API_KEY=\"*\"",
    "box \"t\"\nagent { image \"oci:x\"; }\nnetwork \"filtered\" { allow \"https://user:*@api.example.org\"; }",
    "box \"*\"\nagent { image \"oci:x\"; }",
    "[box]\nname = \"t\"\n[agent]\nimage = \"oci:x\"\nenv = { TOKEN = \"*\" }\n",
    "[box]\nname = \"t\"\n[agent]\nimage = \"oci:x\"\n[agent.env]\nTOKEN = *\n",
    "[box]\nname = \"t\"\n[agent]\nimage = \"oci:x\"\nTOKEN = \"*\"\n",
    "[box]\nname = \"t\"\n[[secret]]\nname = \"API_KEY\"\nvalue = \"*\"\n[agent]\nimage = \"oci:x\"\n",
];
/// Files of variables. `*` is replaced by each of the secrets.
const ENV_FILES: [&str; 8] = [
    "TOKEN=*\n",
    "TO KEN=*\n",
    "*\n",
    "TOKEN=\"*\n",
    "TOKEN='x' *\n",
    "TOKEN=\"\\q*\"\n",
    "export *\n",
    "TOKEN=1\nTOKEN=*\n",
];
/// Configurations of registries. `*` is replaced by each of the secrets.
const REGISTRIES: [&str; 8] = [
    "[registry.\"127.0.0.1:1\"]\npassword = \"*\"\n",
    "[registry.\"127.0.0.1:1\"]\npassword = *\n",
    "[registry.\"127.0.0.1:1\"]\nauth = { username = \"me\", password = \"*\" }\n",
    "[registry.\"127.0.0.1:1\"]\nmirrors = [\"https://me:*@mirror.example.org\"]\n",
    "[registry.\"127.0.0.1:1\"]\nmirrors = [\"me:*@mirror.example.org\"]\n",
    "[registry.\"127.0.0.1:1\"]\nauth-realm = \"me:*@auth.example.org\"\n",
    "[registry.\"me:*@127.0.0.1:1\"]\nplain-http = true\n",
    "token = \"*\"\n",
];
/// Files of credentials for a registry that does not answer. `*` is replaced by each of the secrets.
const CREDENTIALS: [&str; 5] = [
    r#"{"auths": {"127.0.0.1:1": {"auth": "*"}}}"#,
    r#"{"auths": {"127.0.0.1:1": {"auth": *}}}"#,
    r#"{"auths": "*"}"#,
    r#"{"credsStore": "*"}"#,
    "*",
];

/// Runs a command, which must fail, and checks that its output does not contain the secret.
#[track_caller]
fn check(command: &mut Command, with: &str) {
    let output = command.output().unwrap();
    let message = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!output.status.success() && !message.is_empty(), "{with}: {message}");
    assert!(
        !message.contains(WORD),
        "{:?} of {with} shows the secret:\n{message}",
        command.get_args()
    );
}

/// Returns the text with `*` replaced by each of the secrets.
fn planted(text: &str) -> [String; 2] {
    [TOKEN, WORD].map(|secret| text.replace('*', secret))
}

#[test]
fn no_message_repeats_a_secret_of_a_boxfile() {
    let checkout = Checkout::new();
    for text in BOXFILES {
        let text = text.replace('*', TOKEN);
        checkout.write("Boxfile", &text);
        COMMANDS.iter().for_each(|args| check(&mut checkout.boxbuild(args), &text));
    }
}

#[test]
fn no_message_repeats_a_value_of_a_file_of_variables() {
    let checkout = Checkout::new();
    let health = "    health \"tcp\"\n";
    checkout
        .write("Boxfile", BOXFILE.replace(health, &format!("{health}    env-file \"a.env\"\n")));
    for text in ENV_FILES.into_iter().flat_map(planted) {
        checkout.write("a.env", &text);
        COMMANDS.iter().for_each(|args| check(&mut checkout.boxbuild(args), &text));
    }
}

#[test]
fn no_message_repeats_what_a_configuration_of_registries_says() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", BOXFILE.replace("oci:images/agent", "docker://127.0.0.1:1/a/b:c"));
    let builds = &COMMANDS[3..];
    for text in REGISTRIES.into_iter().flat_map(planted) {
        checkout.write("registries.toml", &text);
        for args in builds {
            let args = [args, &["--registry-config", "registries.toml"][..]].concat();
            check(&mut checkout.boxbuild(&args), &text);
        }
    }
}

#[test]
fn no_message_repeats_what_a_file_of_credentials_says() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", BOXFILE.replace("oci:images/agent", "docker://127.0.0.1:1/a/b:c"));
    // Runs all commands concurrently, because each retries the registry with pauses.
    thread::scope(|scope| {
        for (number, text) in CREDENTIALS.into_iter().flat_map(planted).enumerate() {
            let file = format!("auth-{number}.json");
            checkout.write(&file, &text);
            for args in &COMMANDS[3..] {
                let mut command = checkout.boxbuild(args);
                command.env("REGISTRY_AUTH_FILE", checkout.path(&file));
                let text = text.clone();
                scope.spawn(move || check(&mut command, &text));
            }
        }
    });
}
