//! The built helm.

use std::path::PathBuf;
use std::process::Command;

use crate::control_plane::ControlPlane;
use crate::kubectl::{Output, run};

/// helm as cluster admin, with its files away from the developer's own.
pub struct Helm {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
}

impl Helm {
    pub fn new(plane: &ControlPlane) -> Self {
        Self {
            program: plane.assets.helm.clone(),
            home: plane.home.clone(),
            kubeconfig: plane.admin_kubeconfig.clone(),
        }
    }

    /// Runs helm and gives what it said, whatever its exit code.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HELM_") {
                command.env_remove(name);
            }
        }
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(name, self.home.join("helm"));
        }
        command.env("HOME", &self.home).env("KUBECONFIG", &self.kubeconfig).args(args);
        run(&mut command, None).unwrap()
    }

    /// Runs helm, which must succeed, and gives its standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        self.run(args).success(&format!("helm {}", args.join(" "))).unwrap()
    }
}
