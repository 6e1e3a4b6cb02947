//! Fashion-MNIST by way of Debian's package, unpacked without rights into the cache.

use crate::{Source, TrainError};
use aneforge_io::cache::cache_folder;
use aneforge_io::unpacked;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package (Debian 12: version 0.0~git20200523.55506a9-1, 30.9 MB, licence Expat).
const PACKAGE: &str = "dataset-fashion-mnist";
/// Where its files are inside.
const INSIDE: &str = "usr/share/datasets/fashion-mnist";

/// A file of the set with what it must contain.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    bytes: usize,
    sha256: &'static str,
}

/// The files, unpacked: 16 bytes of header and 28 x 28 for each of 60,000 and 10,000 images, 8 and one for each label. Digests are of
/// the package's files.
pub(crate) const FASHION: [Known; 4] = [
    Known {
        name: "train-images-idx3-ubyte",
        bytes: 47_040_016,
        sha256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    },
    Known {
        name: "train-labels-idx1-ubyte",
        bytes: 60_008,
        sha256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    },
    Known {
        name: "t10k-images-idx3-ubyte",
        bytes: 7_840_016,
        sha256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    },
    Known {
        name: "t10k-labels-idx1-ubyte",
        bytes: 10_008,
        sha256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
];

/// What to do where images are missing.
pub(crate) fn what_to_do(source: Source) -> String {
    let files = source.files().join(", ");
    match source {
        Source::FashionMnist => {
            format!("put {files} (also packed, with .gz) into a folder and name it as \"data\" in the settings or with --data")
        }
        Source::Cifar10 => {
            format!(
                "unpack the binary version of CIFAR-10, {files}, and name its folder as \"data\" in the settings or with --data"
            )
        }
    }
}

/// The folder of a data set in the cache, filled if it can be.
pub(crate) fn cached(source: Source) -> Result<PathBuf, TrainError> {
    if source != Source::FashionMnist {
        return Err(TrainError::NoData { name: source.name(), problem: what_to_do(source) });
    }
    let folder = cache_folder().join("fashion-mnist");
    let whole = |known: &Known| fs::metadata(folder.join(known.name)).is_ok_and(|found| found.len() == known.bytes as u64);
    if !FASHION.iter().all(whole) {
        fetch(&folder).map_err(|problem| {
            let problem = format!("{problem}; {}", what_to_do(source));
            TrainError::NoData { name: source.name(), problem }
        })?;
    }
    Ok(folder)
}

/// Fetches the package, checks its files and puts them into `folder`, all or none.
fn fetch(folder: &Path) -> Result<(), String> {
    let parent = folder.parent().unwrap_or(Path::new("."));
    let said = |action: &str, error: std::io::Error| format!("cannot {action} in {}: {error}", parent.display());
    fs::create_dir_all(parent).map_err(|error| said("make a folder", error))?;
    let work =
        tempfile::Builder::new().prefix(".fashion-mnist-").tempdir_in(parent).map_err(|error| said("make a folder", error))?;
    run(Command::new("apt-get").args(["download", PACKAGE]).current_dir(work.path()))?;
    let archive = fs::read_dir(work.path())
        .map_err(|error| said("list", error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or("apt-get left no package")?;
    let unpacked_to = work.path().join("package");
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked_to))?;
    let staged = work.path().join("files");
    fs::create_dir(&staged).map_err(|error| said("make a folder", error))?;
    for known in &FASHION {
        let packed = unpacked_to.join(INSIDE).join(format!("{}.gz", known.name));
        let bytes = unpacked(&packed).map_err(|error| format!("the package {PACKAGE} is another than expected: {error}"))?;
        check(known, &bytes)?;
        fs::write(staged.join(known.name), bytes).map_err(|error| said("write", error))?;
    }
    // What is there is not whole, or this would not run.
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| said("replace the damaged fashion-mnist", error))?;
    }
    fs::rename(&staged, folder).map_err(|error| said("rename", error))
}

/// Whether a file is the one that is known.
fn check(known: &Known, bytes: &[u8]) -> Result<(), String> {
    if bytes.len() != known.bytes {
        return Err(format!("{} has {} bytes, {} were expected", known.name, bytes.len(), known.bytes));
    }
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found != known.sha256 {
        return Err(format!("{} has SHA-256 {found}, {} was expected", known.name, known.sha256));
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("this system has no {name}, by which the Debian package {PACKAGE} would be fetched"));
        }
        Err(error) => return Err(format!("{name} cannot be started: {error}")),
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed for the package {PACKAGE}: {}", said.trim().lines().next_back().unwrap_or("it said nothing")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_of_another_length_or_content_is_refused() {
        let known = &FASHION[3];
        assert!(check(known, &[0; 7]).unwrap_err().contains("7 bytes"));
        assert!(check(known, &vec![0; known.bytes]).unwrap_err().contains("SHA-256"));
    }

    #[test]
    fn a_missing_command_is_told_with_what_it_would_have_done() {
        let error = run(&mut Command::new("no-such-command-at-all")).unwrap_err();
        assert!(error.contains("no-such-command-at-all") && error.contains(PACKAGE), "{error}");
        assert!(what_to_do(Source::FashionMnist).contains("t10k-labels-idx1-ubyte"));
    }
}
