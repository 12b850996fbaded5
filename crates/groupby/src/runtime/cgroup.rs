//! The cgroups of Linux that this process runs within: its own and all around it.
//!
//! In: files of the system. Out: folders of cgroups, from the inside out.
//! Invariant: what is not there limits nothing.
//! Not here: what files in these folders say (topology.rs; memory is the engine's).

/// Reads a file of the system; `None` where there is none. Tests have a machine of their own.
pub type SystemFiles<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The files of the system that this process runs on.
pub fn system_file(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// One cgroup, as one controller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Where its files are.
    pub folder: String,
    /// True of version 2, whose files have other names than those of version 1.
    pub is_unified: bool,
}

/// The cgroups around this process that `controller` limits (`cpu`, `memory`), of both versions.
pub fn cgroups(files: SystemFiles<'_>, controller: &str) -> Vec<Cgroup> {
    let mut found = Vec::new();
    let own = files("/proc/self/cgroup").unwrap_or_default();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match controllers {
            "" => "/sys/fs/cgroup".to_string(),
            some if some.split(',').any(|one| one == controller) => {
                format!("/sys/fs/cgroup/{controller}")
            }
            _ => continue,
        };
        let mut path = path.trim_matches('/');
        loop {
            found.push(Cgroup {
                folder: match path {
                    "" => root.clone(),
                    path => format!("{root}/{path}"),
                },
                is_unified: controllers.is_empty(),
            });
            if path.is_empty() {
                break;
            }
            path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Cgroup, cgroups};

    #[test]
    fn cgroups_of_both_versions_are_found_up_to_their_roots() {
        let files = |path: &str| {
            let text = "9:memory:/\n1:cpu,cpuacct:/a/b\n5:devices:/c\n0::/d\n";
            (path == "/proc/self/cgroup").then(|| text.to_string())
        };
        let found = |controller| -> Vec<(String, bool)> {
            let all = cgroups(&files, controller).into_iter();
            all.map(|Cgroup { folder, is_unified }| (folder, is_unified))
                .collect()
        };
        let own = |folder: &str, is_unified| (format!("/sys/fs/cgroup{folder}"), is_unified);
        assert_eq!(
            found("cpu"),
            [
                own("/cpu/a/b", false),
                own("/cpu/a", false),
                own("/cpu", false),
                own("/d", true),
                own("", true),
            ]
        );
        assert_eq!(
            found("memory"),
            [own("/memory", false), own("/d", true), own("", true)]
        );
        assert!(cgroups(&|_| None, "cpu").is_empty());
    }
}
