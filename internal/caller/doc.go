// Package caller turns the claims of a verified token into who is calling: identity, organization, roles, groups and
// agent, and whether it is a machine.
//
// Nothing here asks a store. An Identity carries what the store needs to find the records (storage.OrganizationClaim,
// storage.UserClaim). Everything comes from the token; headers that claim an identity are no input (attack O09).
//
// Errors are either *token.Error of kind token.ErrInvalid (the token contradicts itself: 401) or wrap ErrForbidden (the
// token is good but names no organization: 403). There is no default organization.
package caller
