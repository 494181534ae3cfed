// Package smart decides which of its slots a smart model sends a request to.
//
// The length of a request forbids slots below its floor. The determiner chooses among the others: it is a model that
// reads the last user input and names one slot. After a failure (an error, three seconds without an answer, an answer
// that is not exactly one slot's number) the request goes to the policy's default slot, whatever the floor.
//
// The determiner reads text from strangers, and no prompt keeps a model from obeying it. So its input and output are
// made so that obedience changes nothing but the slot. It gets no tools, no other message and no secret. Its answer is
// read as one number and is never shown or forwarded. The worst effect of a text is a choice among the slots that its
// sender may be routed to anyway. To keep a caller from a model, restrict the scopes of their key to other aliases; a
// smart model is no protection.
package smart
