//go:build !unix

package rig

// claimPortRange returns the same range for every process: there is nothing to lock it with.
func claimPortRange() (portClaim, error) { return portClaim{first: firstPort}, nil }
