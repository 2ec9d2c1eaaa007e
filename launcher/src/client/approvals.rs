//! The questions of a box about commands that wait for an answer.

use std::fmt;

use box_contract::wire::{
    Answer, ApprovalsQuery, ClientMessage, FollowQuestions, GuestMessage, HostMessage, Question,
    QuestionEnded, Reply,
};
use vmm::signals::Stopped;

use super::{Client, ClientError, Event, PATIENCE};
use crate::streams::output::Route;

/// The closure that is called with each question about a command. It returns the answer, or `None` to leave the question to others.
pub(super) struct Asking<'a>(&'a dyn Fn(&Question) -> Result<Option<Reply>, ClientError>);

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking(…)")
    }
}

/// A change of the questions of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionChange {
    /// A command waits.
    Asked(Question),
    /// All questions that waited at the start have been returned.
    Listed,
    /// A command no longer waits.
    Ended(QuestionEnded),
}

impl<'a> Client<'a> {
    /// Calls `asked` with the questions that are meant by `of`, while this client waits for another event, and sends its answers. It is a
    /// no-op without `of`, and for an older box, which asks no questions. Must be called before [`Self::exec`].
    ///
    /// # Errors
    /// If the supervisor closes the connection.
    pub fn on_question(
        mut self,
        of: Option<FollowQuestions>,
        asked: &'a dyn Fn(&Question) -> Result<Option<Reply>, ClientError>,
    ) -> Result<Self, ClientError> {
        if let Some(questions) = of.filter(|_| self.has_questions()) {
            self.tell_supervisor(&ClientMessage::Approvals(ApprovalsQuery { questions }))?;
            self.asking = Some(Asking(asked));
        }
        Ok(self)
    }

    /// Returns whether the box's init asks about commands, and so knows an answer.
    fn has_questions(&self) -> bool {
        let answer = HostMessage::Answer(Answer { question: 0, reply: Reply::Nobody });
        self.protocol >= answer.since()
    }

    /// Returns the questions that wait for an answer now.
    ///
    /// # Errors
    /// [`Stopped`], [`ClientError::BoxEnded`], and [`ClientError::NoAnswer`].
    pub fn questions(&mut self) -> Result<Vec<Question>, ClientError> {
        let mut waiting = Vec::new();
        if self.has_questions() {
            let questions = FollowQuestions::Waiting;
            self.tell_supervisor(&ClientMessage::Approvals(ApprovalsQuery { questions }))?;
            self.give_up_after(PATIENCE);
            while let QuestionChange::Asked(question) = self.next_question()? {
                waiting.push(question);
            }
            self.be_patient();
        }
        Ok(waiting)
    }

    /// Asks for the questions that wait now and for each change: see [`Self::next_question`].
    ///
    /// # Errors
    /// If the supervisor closes the connection, or the box is too old to ask questions.
    pub fn follow_questions(&mut self) -> Result<(), ClientError> {
        if !self.has_questions() {
            return Err(crate::streams::StreamError::OlderBox(self.protocol).into());
        }
        let questions = FollowQuestions::All;
        self.tell_supervisor(&ClientMessage::Approvals(ApprovalsQuery { questions }))
    }

    /// Waits for the next change of the questions.
    ///
    /// # Errors
    /// [`Stopped`], [`ClientError::BoxEnded`], and with a deadline [`ClientError::NoAnswer`].
    pub fn next_question(&mut self) -> Result<QuestionChange, ClientError> {
        loop {
            match self.next()? {
                Event::Message(GuestMessage::Question(question)) => {
                    return Ok(QuestionChange::Asked(question));
                }
                Event::Message(GuestMessage::QuestionsListed(_)) => {
                    return Ok(QuestionChange::Listed);
                }
                Event::Message(GuestMessage::QuestionEnded(ended)) => {
                    return Ok(QuestionChange::Ended(ended));
                }
                Event::Message(message) => self.agent_message(message, &mut Route::Nowhere)?,
                Event::Signal(signal) => return Err(Stopped(signal).into()),
                Event::HungUp => return Err(self.ended()),
                Event::Input(_) | Event::Resized(_) => {}
            }
        }
    }

    /// Answers a question, and ends the connection.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the question does not wait for an answer, and the errors of [`Self::finish`].
    pub fn answer(mut self, answer: Answer) -> Result<(), ClientError> {
        self.ask_supervisor(ClientMessage::Decide(answer))?;
        self.finish()
    }

    /// Asks the closure of [`Self::on_question`] about a command, and sends its answer.
    pub(super) fn ask_about(&mut self, question: &Question) -> Result<(), ClientError> {
        let reply = match &self.asking {
            Some(Asking(asked)) => asked(question)?,
            None => None,
        };
        let Some(reply) = reply else { return Ok(()) };
        let answer = Answer { question: question.question, reply };
        self.tell_supervisor(&ClientMessage::Decide(answer))
    }
}
