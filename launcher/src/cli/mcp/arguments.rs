//! The tools: their definitions for the client, and the arguments of a call.

use std::ffi::OsString;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::ComponentName;
use box_contract::rules::{MAX_TIMEOUT, check_directory, check_user};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// How many lines `logs` returns by default.
const LINES: usize = 100;

/// A call of a tool, with its arguments.
#[derive(Debug)]
pub(super) enum Tool {
    Exec(ExecArguments),
    ReadFile(ReadArguments),
    WriteFile(WriteArguments),
    ListDirectory(ListArguments),
    Logs(LogsArguments),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecArguments {
    command: Command,
    #[serde(default)]
    pub(super) component: Option<ComponentName>,
    #[serde(default)]
    pub(super) workdir: Option<String>,
    #[serde(default)]
    pub(super) user: Option<String>,
    /// In seconds.
    #[serde(default)]
    timeout: Option<f64>,
}

/// A line for the shell, as the schema has it, or a program with its arguments.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Command {
    Line(String),
    Words(Vec<String>),
}

/// The encoding of a file's content in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    Base64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    pub(super) path: String,
    #[serde(default)]
    pub(super) component: Option<ComponentName>,
    #[serde(default)]
    pub(super) user: Option<String>,
    #[serde(default)]
    pub(super) encoding: Encoding,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    pub(super) path: String,
    content: String,
    #[serde(default)]
    pub(super) component: Option<ComponentName>,
    #[serde(default)]
    pub(super) user: Option<String>,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    executable: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    #[serde(default = "here")]
    pub(super) path: String,
    #[serde(default)]
    pub(super) component: Option<ComponentName>,
    #[serde(default)]
    pub(super) user: Option<String>,
}

/// The working directory of the component.
fn here() -> String {
    ".".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsArguments {
    #[serde(default)]
    pub(super) component: Option<ComponentName>,
    #[serde(default = "lines")]
    pub(super) lines: usize,
}

const fn lines() -> usize {
    LINES
}

/// Why a call is not one of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// There is no such tool. This is an error of the protocol.
    Tool(String),
    /// The arguments are wrong. The model reads this and corrects them
    /// ([tool execution errors](https://modelcontextprotocol.io/specification/2025-06-18/server/tools#error-handling)).
    Arguments(String),
}

impl Tool {
    /// Parses the parameters of `tools/call`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn parse(mut params: Map<String, Value>) -> Result<Self, Wrong> {
        let arguments = as_meant(params.remove("arguments").unwrap_or_default());
        match params.get("name").and_then(Value::as_str) {
            Some("exec") => read(arguments).and_then(ExecArguments::checked).map(Self::Exec),
            Some("read_file") => {
                read(arguments).and_then(ReadArguments::checked).map(Self::ReadFile)
            }
            Some("write_file") => {
                read(arguments).and_then(WriteArguments::checked).map(Self::WriteFile)
            }
            Some("list_directory") => {
                read(arguments).and_then(ListArguments::checked).map(Self::ListDirectory)
            }
            Some("logs") => read(arguments).map(Self::Logs),
            Some(name) => return Err(Wrong::Tool(format!("there is no tool {name}"))),
            None => return Err(Wrong::Tool("the parameter `name` has to be a text".to_owned())),
        }
        .map_err(Wrong::Arguments)
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| format!("the arguments are wrong: {error}"))
}

/// Returns arguments in the types of the schema. Some models send `null` or an empty text for an argument that they leave out, a number
/// as text or with a fraction of 0, and a truth value as text.
fn as_meant(arguments: Value) -> Value {
    match arguments {
        Value::Null => json!({}),
        Value::Object(all) => {
            let kept = all.into_iter().filter(|(name, value)| !is_left_out(name, value));
            Value::Object(kept.map(|(name, value)| (name.clone(), typed(&name, value))).collect())
        }
        other => other,
    }
}

fn is_left_out(name: &str, value: &Value) -> bool {
    let may_be_empty = ["command", "path", "content"].contains(&name);
    value.is_null() || (!may_be_empty && value.as_str() == Some(""))
}

/// Returns an argument that is no text in its type.
fn typed(name: &str, value: Value) -> Value {
    let of_text = match (name, value.as_str()) {
        ("timeout" | "lines", Some(text)) => text.trim().parse::<f64>().ok().map(Value::from),
        ("executable", Some(text)) => text.trim().parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    let value = of_text.unwrap_or(value);
    let whole = value.as_f64().filter(|it| name == "lines" && it.fract() == 0.0);
    // The text of a number without a fraction, such as `50`, is the number itself.
    whole.and_then(|it| it.to_string().parse::<u64>().ok()).map_or(value, Value::from)
}

/// Checks a path and a user of the box.
fn check(path: Option<&str>, user: Option<&str>) -> Result<(), String> {
    if path.is_some_and(|it| it.is_empty() || it.contains('\0')) {
        return Err("`path` has to name a file of the box".to_owned());
    }
    user.map_or(Ok(()), check_user).map_err(|reason| format!("`user` is wrong: {reason}"))
}

impl ExecArguments {
    fn checked(self) -> Result<Self, String> {
        check(None, self.user.as_deref())?;
        let directory = self.workdir.as_deref().map_or(Ok(()), check_directory);
        directory.map_err(|reason| format!("`workdir` is wrong: {reason}"))?;
        let is_empty = match &self.command {
            Command::Line(line) => line.is_empty(),
            Command::Words(words) => words.is_empty(),
        };
        if is_empty {
            return Err("`command` is empty".to_owned());
        }
        let most = f64::from(MAX_TIMEOUT);
        if self.timeout.is_some_and(|it| !(it > 0.0 && it <= most)) {
            return Err(format!("`timeout` has to be more than 0 and at most {most} seconds"));
        }
        Ok(self)
    }

    /// Returns the program and its arguments.
    pub(super) fn argv(&self) -> Vec<OsString> {
        match &self.command {
            Command::Line(line) => ["/bin/sh", "-c", line.as_str()].map(OsString::from).to_vec(),
            Command::Words(words) => words.iter().map(OsString::from).collect(),
        }
    }

    /// Returns the time limit in milliseconds.
    pub(super) fn timeout_ms(&self) -> Option<u64> {
        let limit = Duration::try_from_secs_f64(self.timeout?).ok()?;
        u64::try_from(limit.as_millis()).ok().map(|it| it.max(1))
    }
}

impl ReadArguments {
    fn checked(self) -> Result<Self, String> {
        check(Some(&self.path), self.user.as_deref()).map(|()| self)
    }
}

impl ListArguments {
    fn checked(self) -> Result<Self, String> {
        check(Some(&self.path), self.user.as_deref()).map(|()| self)
    }
}

impl WriteArguments {
    fn checked(self) -> Result<Self, String> {
        check(Some(&self.path), self.user.as_deref())?;
        if self.path.ends_with('/') {
            return Err("`path` has to end with the name of the file".to_owned());
        }
        self.bytes().map(|_| self)
    }

    /// Returns the content.
    ///
    /// # Errors
    /// It is not in base64.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        match self.encoding {
            Encoding::Utf8 => Ok(self.content.as_bytes().to_vec()),
            Encoding::Base64 => BASE64_STANDARD
                .decode(&self.content)
                .map_err(|error| format!("`content` is not in base64: {error}")),
        }
    }

    /// Returns the permissions of the file.
    pub(super) const fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// Returns the definitions of all tools.
pub(super) fn definitions() -> Value {
    json!([exec(), read_file(), write_file(), list_directory(), logs()])
}

/// Returns the definition of a tool, with the schema of its arguments.
fn defined(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    let is_reading = !["exec", "write_file"].contains(&name);
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": is_reading, "openWorldHint": name == "exec" },
    })
}

fn described(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description })
}

fn component() -> Value {
    json!({
        "type": "string",
        "enum": ComponentName::ALL.map(ComponentName::name),
        "description": "The component of the box. Default: business if the box has it, else agent.",
    })
}

fn user() -> Value {
    described("string", "USER or USER:GROUP, as names or numbers. Default: the component's user.")
}

fn path() -> Value {
    described(
        "string",
        "The path in the box, absolute or relative to the component's working directory.",
    )
}

fn encoding() -> Value {
    json!({ "type": "string", "enum": ["utf-8", "base64"], "default": "utf-8" })
}

fn exec() -> Value {
    // The subset of JSON Schema that the interfaces of all models accept: one type for each property, and no exclusive bounds.
    let properties = json!({
        "command": described("string", "A line for /bin/sh."),
        "component": component(),
        "workdir": described("string", "The working directory, an absolute path."),
        "user": user(),
        "timeout": described("number", "Kill the command after this many seconds, more than 0."),
    });
    let description = "Runs a command in the box, and returns its exit status and its output. A status other than 0 is a \
                       result, no error.";
    defined("exec", description, &properties, &["command"])
}

fn read_file() -> Value {
    let description = "Returns the content of a file in the box. A content that is not UTF-8 needs the encoding base64.";
    let properties = json!({
        "path": path(), "component": component(), "user": user(), "encoding": encoding(),
    });
    defined("read_file", description, &properties, &["path"])
}

fn write_file() -> Value {
    let description =
        "Writes a file in the box, and replaces an existing one. Its directory has to exist.";
    let properties = json!({
        "path": path(),
        "content": described("string", "The whole content of the file."),
        "component": component(),
        "user": user(),
        "encoding": encoding(),
        "executable": { "type": "boolean", "default": false },
    });
    defined("write_file", description, &properties, &["path", "content"])
}

fn list_directory() -> Value {
    let description = "Lists the entries of a directory in the box, with their types, sizes, permissions and times.";
    let properties = json!({ "path": path(), "component": component(), "user": user() });
    defined("list_directory", description, &properties, &[])
}

fn logs() -> Value {
    let description =
        "Returns the last lines that the agent or the business application of the box has written.";
    let properties = json!({
        "component": {
            "type": "string",
            "enum": ComponentName::ALL.map(ComponentName::name),
            "default": ComponentName::Agent,
        },
        "lines": { "type": "integer", "minimum": 0, "default": LINES },
    });
    defined("logs", description, &properties, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, arguments: Value) -> Result<Tool, Wrong> {
        let params = json!({ "name": name, "arguments": arguments });
        Tool::parse(params.as_object().unwrap().clone())
    }

    #[test]
    fn a_command_is_a_line_or_words() {
        let argv = |command: Value| match tool("exec", json!({ "command": command })).unwrap() {
            Tool::Exec(exec) => exec.argv(),
            other => panic!("{other:?}"),
        };
        assert_eq!(argv(json!("ls | wc")), ["/bin/sh", "-c", "ls | wc"]);
        assert_eq!(argv(json!(["ls", "-l"])), ["ls", "-l"]);
    }

    #[test]
    fn a_time_limit_can_be_a_fraction() {
        let limit =
            |timeout: Value| match tool("exec", json!({ "command": "x", "timeout": timeout }))
                .ok()?
            {
                Tool::Exec(exec) => exec.timeout_ms(),
                other => panic!("{other:?}"),
            };
        assert_eq!((limit(json!(2)), limit(json!(0.25))), (Some(2000), Some(250)));
        assert_eq!(limit(json!(0.000_01)), Some(1));
        assert_eq!(limit(json!("30")), Some(30_000), "a text that is a number");
        for bad in [json!(0), json!(-1), json!(1e9), json!("soon"), json!("NaN")] {
            assert_eq!(limit(bad), None);
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (name, arguments, part) in [
            ("exec", json!({}), "command"),
            ("exec", json!({ "command": [] }), "`command` is empty"),
            ("exec", json!({ "command": "x", "workdir": "tmp" }), "`workdir` is wrong"),
            ("exec", json!({ "command": "x", "user": "a@b" }), "`user` is wrong"),
            ("exec", json!({ "command": "x", "component": "other" }), "other"),
            ("exec", json!({ "command": "x", "shell": true }), "shell"),
            ("read_file", json!({ "path": "" }), "`path`"),
            ("write_file", json!({ "path": "/tmp/", "content": "" }), "`path`"),
            ("write_file", json!({ "path": "/a", "content": "%", "encoding": "base64" }), "base64"),
            ("logs", json!({ "lines": -1 }), "-1"),
            ("logs", json!([1, 2]), ""),
            ("exec", json!({ "command": "x", "cwd": "/tmp" }), "`workdir`"),
        ] {
            let Wrong::Arguments(error) = tool(name, arguments).unwrap_err() else {
                panic!("{name}")
            };
            assert!(error.contains(part), "{name}: {error}");
        }
        let unknown = Wrong::Tool("there is no tool reboot".to_owned());
        assert_eq!(tool("reboot", json!({})).unwrap_err(), unknown);
    }

    #[test]
    fn what_models_send_is_taken_as_they_mean_it() {
        let left_out = json!({
            "command": "x", "component": "", "workdir": null, "user": "", "timeout": null,
        });
        let Ok(Tool::Exec(exec)) = tool("exec", left_out) else { panic!() };
        assert_eq!((exec.component, exec.workdir, exec.user), (None, None, None));
        for lines in [json!(50), json!(50.0), json!("50"), json!("50.0")] {
            let Ok(Tool::Logs(logs)) = tool("logs", json!({ "lines": lines })) else { panic!() };
            assert_eq!(logs.lines, 50);
        }
        for arguments in [Value::Null, json!({})] {
            assert!(matches!(tool("logs", arguments), Ok(Tool::Logs(_))));
        }
        let empty = json!({ "path": "/a", "content": "", "executable": "true" });
        let Ok(Tool::WriteFile(write)) = tool("write_file", empty) else { panic!() };
        assert_eq!((write.bytes().unwrap(), write.mode()), (Vec::new(), 0o755));
    }

    #[test]
    fn each_property_has_one_type_and_no_exclusive_bound() {
        for definition in definitions().as_array().unwrap() {
            for property in definition["inputSchema"]["properties"].as_object().unwrap().values() {
                assert!(property["type"].is_string(), "{property}");
                let has = |name: &str| property.get(name).is_some();
                assert!(!has("anyOf") && !has("exclusiveMinimum"), "{property}");
            }
        }
    }

    #[test]
    fn every_defined_tool_is_one() {
        for definition in definitions().as_array().unwrap() {
            let name = definition["name"].as_str().unwrap();
            let required = definition["inputSchema"]["required"].as_array().unwrap();
            let arguments: Map<_, _> =
                required.iter().map(|it| (it.as_str().unwrap().to_owned(), json!("x"))).collect();
            tool(name, Value::Object(arguments)).unwrap();
        }
    }
}
