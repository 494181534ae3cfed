// Package cache holds facts that are derived from the store, so that a request on a warm node touches no database.
//
// Every value belongs to an organization and carries the epoch that the organization had when loading began. A write to
// the organization starts a new epoch, and from then on no older value is served. So a caller never reads a value older
// than the last write that was answered before the caller asked.
//
// A cache may lose any value at any time (ristretto drops under contention and evicts by cost). So it must hold only
// values that can be loaded again: no counters, sessions, approvals or revocations.
package cache
