// Package caller reads from the claims of a verified token who is calling: identity, organization, roles, groups and
// agent, and whether it is a machine.
//
// Nothing here asks a store. An Identity carries the data with which the store finds the records
// (storage.OrganizationClaim, storage.UserClaim). Everything comes from the token; headers that claim an identity are
// not read (attack O09).
//
// Errors are either *token.Error of kind token.ErrInvalid (the token contradicts itself: 401) or wrap ErrForbidden (the
// token is good but names no organization: 403). There is no default organization.
package caller
