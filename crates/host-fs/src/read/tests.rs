use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, RenameFlags, mknodat, renameat_with};

use super::*;

struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) -> PathBuf {
        symlink(target, self.path(name)).unwrap();
        self.path(name)
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }
}

fn is_refused(path: &Path, links: Links) -> bool {
    matches!(read_file(path, links, 100), Err(ReadError::NotRegular))
        && matches!(read_prefix(path, links, 100), Err(ReadError::NotRegular))
}

#[test]
fn a_regular_file_is_read_whole() {
    let scene = Scene::new();
    let path = scene.file("file", "content");
    for links in [Links::Follow, Links::Refuse, Links::RefuseAll] {
        assert_eq!(read_file(&path, links, 7).unwrap(), b"content");
        assert_eq!(read_prefix(&path, links, 4).unwrap(), b"cont");
        assert_eq!(read_prefix(&path, links, 100).unwrap(), b"content");
    }
    assert_eq!(read_file(&scene.file("empty", ""), Links::Refuse, 0).unwrap(), b"");
}

#[test]
fn a_link_is_followed_only_where_that_is_asked_for() {
    let scene = Scene::new();
    scene.file("file", "content");
    let link = scene.link("link", "file");
    assert_eq!(read_file(&link, Links::Follow, 7).unwrap(), b"content");
    assert!(is_refused(&link, Links::Refuse));
    assert!(is_refused(&scene.link("dangling", "missing"), Links::Refuse));
    assert!(read_file(&scene.path("dangling"), Links::Follow, 7).unwrap_err().is_absent());
}

#[test]
fn a_link_before_the_file_is_refused_only_with_all_links() {
    let scene = Scene::new();
    fs::create_dir(scene.path("directory")).unwrap();
    fs::write(scene.path("directory/file"), "content").unwrap();
    let path = scene.link("way", "directory").join("file");
    assert_eq!(read_file(&path, Links::Refuse, 7).unwrap(), b"content");
    assert!(is_refused(&path, Links::RefuseAll));
    let direct = scene.path("directory/file");
    assert_eq!(read_file(&direct, Links::RefuseAll, 7).unwrap(), b"content");
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let scene = Scene::new();
    let pipe = scene.pipe("pipe");
    let socket = scene.path("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let zero = scene.link("zero", "/dev/zero");
    let to_pipe = scene.link("to-pipe", "pipe");
    for links in [Links::Follow, Links::Refuse, Links::RefuseAll] {
        for path in [&pipe, &socket, &zero, &to_pipe, scene.dir.path(), Path::new("/dev/zero")] {
            assert!(is_refused(path, links), "{} {links:?}", path.display());
        }
    }
    drop(listener);
}

#[test]
fn a_file_that_is_too_long_is_named_with_both_numbers_and_not_read() {
    let scene = Scene::new();
    let path = scene.path("sparse");
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    match read_file(&path, Links::Refuse, 1 << 20) {
        Err(ReadError::TooLong { limit, found }) => assert_eq!((limit, found), (1 << 20, 1 << 40)),
        other => panic!("{other:?}"),
    }
    let error = read_file(&scene.file("file", "content"), Links::Follow, 6).unwrap_err();
    assert_eq!(error.to_string(), "it has 7 bytes, and at most 6 are allowed");
}

#[test]
fn a_file_without_a_length_is_held_to_the_limit_all_the_same() {
    // Files of proc have the length zero, even if they have content.
    let error = read_file(Path::new("/proc/self/status"), Links::Refuse, 10).unwrap_err();
    assert!(matches!(error, ReadError::TooLong { limit: 10, found: 11 }), "{error:?}");
}

#[test]
fn a_missing_file_is_absent_and_an_unreadable_directory_is_not() {
    let scene = Scene::new();
    let file = scene.file("file", "");
    let absent = |path: &Path| read_file(path, Links::Follow, 1).unwrap_err().is_absent();
    assert!(absent(&scene.path("missing")));
    assert!(absent(&file.join("below")));
    assert!(!absent(scene.dir.path()));
}

#[test]
fn an_error_keeps_its_message_and_kind_as_an_io_error() {
    let scene = Scene::new();
    let io_error = |path: &Path| io::Error::from(read_file(path, Links::Refuse, 2).unwrap_err());
    let error = io_error(&scene.pipe("pipe"));
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "it is not a regular file");
    assert_eq!(io_error(&scene.path("missing")).kind(), io::ErrorKind::NotFound);
    assert_eq!(io_error(&scene.file("long", "long")).kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_file_that_is_swapped_for_a_pipe_is_read_or_refused() {
    let scene = Scene::new();
    let (file, other) = (scene.file("file", "content"), scene.pipe("other"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &file, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let outcomes: Vec<_> = (0..2000).map(|_| read_file(&file, Links::Refuse, 100)).collect();
        done.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            match outcome {
                Ok(bytes) => assert_eq!(bytes, b"content"),
                Err(error) => assert!(matches!(error, ReadError::NotRegular), "{error:?}"),
            }
        }
    });
}

#[test]
fn a_path_is_relative_to_the_open_directory() {
    let scene = Scene::new();
    scene.file("file", "content");
    let directory = File::open(scene.dir.path()).unwrap();
    let file = open_regular_at(&directory, Path::new("file"), Links::Refuse).unwrap();
    assert_eq!(read_open(&file, 100).unwrap(), b"content");
}

#[test]
fn a_text_of_another_encoding_is_named() {
    let reason = |bytes: &[u8]| {
        let error = text(Path::new("a"), bytes.to_vec()).unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    };
    for utf16 in [b"\xff\xfea\0", b"\xfe\xff\0a"] {
        assert!(reason(utf16).contains("it is UTF-16, not UTF-8"), "{}", reason(utf16));
    }
    assert!(reason(b"a\n\xe9").contains("line 2, column 1"), "{}", reason(b"a\n\xe9"));
}
