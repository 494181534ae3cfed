// Package edit reads request bodies of the API about policies. It checks the fields, reports all problems at once,
// and computes the effect of a change on an existing policy. It asks no store: the store checks references, names and
// overlaps, and [Edit] only gives their problems a place.
//
// Unknown members are refused in policies and in their rules, where a typo changes who may do what.
package edit
