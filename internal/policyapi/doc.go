// Package policyapi reads what the API is told about policies: bodies against the rules of their fields, all problems at
// once, and what a change makes of a policy that exists. It asks no store: references, names and overlaps are the store's
// to judge, and [Edit] only gives their problems a place.
//
// Unknown members are refused in policies and in their rules, where a typo changes who may do what.
package policyapi
