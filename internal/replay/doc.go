// Package replay runs a policy over what the audit log remembers of calls, and says which of them it would have decided
// otherwise. It is pure: entries go in, differences and counts come out.
//
// It never guesses. A record has the caller's user, agent, roles and groups, the action and a digest of the arguments; the
// arguments themselves only when the audit log keeps them, less what is redacted, and no claims. Where the decision
// depends on what is not there, the call counts as not judged, and what was missing is counted.
package replay
