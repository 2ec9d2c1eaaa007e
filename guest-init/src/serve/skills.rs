//! The host's requests about loaded skills. Each one runs as a process outside of all components.

use std::os::fd::AsFd as _;

use box_contract::wire::{Exec, ProgramId, SkillTask};
use nix::sched::CloneFlags;
use nix::unistd::Pid;

use super::Server;
use super::program::Program;
use crate::error::{InitError, Step as _};
use crate::skills::{self, Job};
use crate::sys;

impl Server<'_> {
    /// Starts a task. The first task makes the layer of the skills.
    pub(super) fn start_task(
        &mut self,
        id: ProgramId,
        exec: &Exec,
        task: SkillTask,
    ) -> Result<Program, InitError> {
        if !self.has_skills {
            skills::prepare(self.machine.plan)?;
            self.has_skills = true;
        }
        let agent = &self.machine.components[0];
        let (program, streams) =
            Program::with_pipes(agent.name, exec.stdin).step("make the pipes")?;
        let arguments = exec.argv.get(1..).unwrap_or_default();
        let (plan, components) = (self.machine.plan, self.machine.components.as_slice());
        let job = Job { task, arguments, plan, components };
        let cgroup = Some(agent.leaf.as_fd());
        let pid = sys::fork(CloneFlags::empty(), cgroup, || job.run(&streams));
        self.tasks.insert(pid.step("start a process")?, id);
        Ok(program)
    }

    /// Returns the process of a task.
    pub(super) fn task(&self, id: ProgramId) -> Option<Pid> {
        self.tasks.iter().find(|(_, task)| **task == id).map(|(pid, _)| *pid)
    }

    /// Reports the end of a task. Returns `false` if the process is no task.
    pub(super) fn task_has_ended(&mut self, pid: Pid, status: u8) -> bool {
        let Some(id) = self.tasks.remove(&pid) else { return false };
        if status != 0 && self.tasks.is_empty() {
            skills::clear();
        }
        self.program_has_ended(id, status);
        true
    }
}
