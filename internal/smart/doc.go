// Package smart decides which of its slots a smart model sends a request to.
//
// The length of a request forbids slots below its floor. Which of the others it goes to is the answer of the determiner, a
// model that reads the last user input and names one slot. What fails (an error, three seconds without an answer, an answer
// that is not exactly one slot's number) goes to the policy's default slot, whatever the floor.
//
// The determiner reads text that strangers wrote, and no prompt keeps a model from following it. What is given to it is
// therefore made so that following it changes nothing but the slot: it gets no tools, no other message and no secret, its
// answer is read as one number and is never shown or forwarded, and the worst that a text can do is to choose among the
// slots that its sender may be routed to anyway. Who must not reach a model is kept from its alias by the scopes of their
// key, not by a smart model.
package smart
