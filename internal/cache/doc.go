// Package cache holds facts that are derived from the store, so that a request on a warm node touches no database.
//
// Every value belongs to an organization and carries that organization's epoch as it was when loading began. A write to
// the organization bumps its epoch, and from then on no older value is served: what a caller reads is never older than
// the last write that was answered before the caller asked.
//
// A cache may lose any value at any time (ristretto drops under contention and evicts by cost), so nothing lives here that
// cannot be loaded again: no counters, sessions, approvals or revocations.
package cache
