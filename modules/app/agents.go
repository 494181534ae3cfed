package app

import "github.com/durward-gateway/durward/internal/streams"

// EndUser ends what runs for a user whose tokens are refused from now on, and returns how many streams and calls that was.
func (c *Core) EndUser(organization, id string) int {
	return c.Streams.End(streams.Owner{Organization: organization, User: id}, streams.Revoked)
}
