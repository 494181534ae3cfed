// Package replay runs a policy over the calls in the audit log, and says which of them it would have decided
// differently. It is pure: entries go in, differences and counts come out.
//
// It never guesses. A record has the caller's user, agent, roles and groups, the action and a digest of the arguments.
// It has the arguments themselves only when the audit log keeps them, without the redacted ones, and it has no claims.
// Where the decision depends on missing data, the call counts as not judged, and the missing data is counted.
package replay
