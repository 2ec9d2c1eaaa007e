//! The questions of init about commands that wait for an answer, and the clients that answer them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use box_contract::wire::{
    Answer, FollowQuestions, GuestMessage, HostMessage, MAX_QUESTIONS, ProgramId, Question,
    QuestionEnded, QuestionsListed, Reply,
};

use super::Supervisor;

/// The action in the refusal of an answer.
pub(crate) const DECIDE: &str = "answer the question";

/// The questions that have not ended, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Approvals(BTreeMap<u32, Waiting>);

/// The longest time that a question waits, in milliseconds: the maximum of the plan's
/// [`ask_timeout_seconds`](box_contract::SandboxPlan::ask_timeout_seconds).
const LONGEST_MS: u64 = u32::MAX as u64 * 1000;

/// A question that has not ended.
#[derive(Debug)]
struct Waiting {
    question: Question,
    /// When init denies the command.
    until: Instant,
    /// Whether init has been sent an answer.
    is_answered: bool,
}

impl Approvals {
    /// Adds a question of a guest. Returns `false` if the question is not one that init asks: the guest is compromised.
    fn add(&mut self, question: Question, now: Instant) -> bool {
        let until = now.checked_add(Duration::from_millis(question.timeout_ms.min(LONGEST_MS)));
        let Some(until) = until.filter(|_| question.is_short()) else { return false };
        if self.0.len() >= MAX_QUESTIONS {
            self.0.retain(|_, it| it.until > now);
        }
        if self.0.len() >= MAX_QUESTIONS || self.0.contains_key(&question.question) {
            return false;
        }
        self.0.insert(question.question, Waiting { question, until, is_answered: false });
        true
    }

    /// Marks a question as answered. Returns `false` if it does not wait for an answer.
    fn answer(&mut self, number: u32, now: Instant) -> bool {
        let waiting = self.0.get_mut(&number).filter(|it| !it.is_answered && it.until > now);
        waiting.map(|it| it.is_answered = true).is_some()
    }

    /// Returns the questions that wait for an answer, each with the time that is left.
    fn waiting(&self, now: Instant) -> Vec<Question> {
        let waits = |it: &&Waiting| !it.is_answered && it.until > now;
        let left = |it: &Waiting| {
            let left = it.until.saturating_duration_since(now).as_millis();
            let timeout_ms = u64::try_from(left).unwrap_or(u64::MAX);
            Question { timeout_ms, ..it.question.clone() }
        };
        self.0.values().filter(waits).map(left).collect()
    }
}

impl Supervisor {
    /// Returns the client whose command a question is about. `None` for a command of the agent.
    fn owner(&self, question: &Question) -> Option<u64> {
        question.id.and_then(|id| self.programs.client(id))
    }

    /// Returns whether somebody can answer a question about a command of `owner`.
    fn is_answerable(&self, owner: Option<u64>) -> bool {
        self.terms.waits_for_answers || self.clients.can_answer(owner)
    }

    /// Handles a question of init: sends it to the clients, or answers that nobody is there.
    pub(super) fn question_asked(&mut self, question: Question) {
        let (number, owner) = (question.question, self.owner(&question));
        let is_kept =
            self.is_answerable(owner) && self.approvals.add(question.clone(), Instant::now());
        if !is_kept {
            self.send_answer(Answer { question: number, reply: Reply::Nobody });
            return;
        }
        for client in self.clients.of_questions(owner) {
            let message = GuestMessage::Question(seen_by(client, owner, &question));
            self.clients.offer(client, &message);
        }
    }

    /// Handles the end of a question.
    pub(super) fn question_ended(&mut self, ended: QuestionEnded) {
        let Some(Waiting { question, .. }) = self.approvals.0.remove(&ended.question) else {
            return;
        };
        for client in self.clients.of_questions(self.owner(&question)) {
            self.clients.offer(client, &GuestMessage::QuestionEnded(ended));
        }
    }

    /// Handles a client's request for questions.
    pub(super) fn send_questions(&mut self, client: u64, of: FollowQuestions) {
        self.clients.follow_questions(client, of);
        if matches!(of, FollowQuestions::Own | FollowQuestions::Shown) {
            return;
        }
        for question in self.approvals.waiting(Instant::now()) {
            let question = seen_by(client, self.owner(&question), &question);
            self.clients.send(client, &GuestMessage::Question(question), None);
        }
        let listed = GuestMessage::QuestionsListed(QuestionsListed {});
        self.clients.send(client, &listed, None);
    }

    /// Sends a client's answer to init.
    ///
    /// # Errors
    /// If the question does not wait for an answer.
    pub(super) fn decide(&mut self, answer: Answer) -> Result<(), String> {
        if !self.approvals.answer(answer.question, Instant::now()) {
            return Err(format!("no command waits with the number {}", answer.question));
        }
        self.send_answer(answer);
        Ok(())
    }

    /// Answers the questions that nobody can answer any more, after a client has disconnected.
    pub(super) fn end_unanswerable(&mut self) {
        let now = Instant::now();
        for question in self.approvals.waiting(now) {
            let number = question.question;
            if !self.is_answerable(self.owner(&question)) && self.approvals.answer(number, now) {
                self.send_answer(Answer { question: number, reply: Reply::Nobody });
            }
        }
    }

    fn send_answer(&self, answer: Answer) {
        self.machine.tell(&HostMessage::Answer(answer));
    }
}

/// Returns a question as a client gets it, with an id only if it is about the client's own command.
fn seen_by(client: u64, owner: Option<u64>, question: &Question) -> Question {
    let id = (owner == Some(client)).then_some(ProgramId::COMMAND);
    Question { id, ..question.clone() }
}

#[cfg(test)]
mod tests {
    use box_contract::ComponentName;
    use box_contract::wire::{Caller, Exec};

    use super::*;

    fn question(number: u32) -> Question {
        let exec = Exec::new(ComponentName::Business, ["touch", "/a"]);
        let about = Question::about(&exec, Caller::Host, (Some("touch *"), ""));
        Question { question: number, id: Some(ProgramId(7)), timeout_ms: 2000, ..about }
    }

    #[test]
    fn a_question_waits_until_it_is_answered_or_its_time_is_over() {
        let (mut approvals, now) = (Approvals::default(), Instant::now());
        assert!(approvals.add(question(1), now) && approvals.add(question(2), now));
        let later = now + Duration::from_millis(500);
        let left: Vec<_> = approvals.waiting(later).iter().map(|it| it.timeout_ms).collect();
        assert_eq!(left, [1500, 1500]);
        assert!(approvals.answer(1, later));
        assert!(!approvals.answer(1, later), "it has an answer");
        assert!(!approvals.answer(3, later), "there is no such question");
        assert_eq!(approvals.waiting(later).len(), 1);
        let over = now + Duration::from_secs(2);
        assert_eq!(approvals.waiting(over), []);
        assert!(!approvals.answer(2, over));
    }

    #[test]
    fn a_compromised_guest_cannot_fill_the_list() {
        let (mut approvals, now) = (Approvals::default(), Instant::now());
        assert!(!approvals.add(Question { reason: "x".repeat(20_000), ..question(1) }, now));
        assert!(approvals.add(Question { timeout_ms: u64::MAX, ..question(9999) }, now));
        assert_eq!(approvals.waiting(now + Duration::from_millis(LONGEST_MS)), []);
        approvals.0.clear();
        assert!(approvals.add(question(1), now) && !approvals.add(question(1), now));
        let most = u32::try_from(MAX_QUESTIONS).unwrap();
        assert!((2..=most).all(|number| approvals.add(question(number), now)));
        assert!(!approvals.add(question(most + 1), now));
        assert!(approvals.add(question(most + 1), now + Duration::from_secs(3)), "all are over");
    }

    #[test]
    fn only_the_own_command_of_a_client_has_an_id() {
        let id = |client, owner| seen_by(client, owner, &question(1)).id;
        assert_eq!(id(5, Some(5)), Some(ProgramId::COMMAND));
        assert_eq!((id(5, Some(6)), id(5, None)), (None, None));
    }
}
