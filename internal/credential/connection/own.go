package connection

import (
	"context"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// OwnClient returns the client of a server whose tokens the gateway gets without a user's browser, and how it proves itself at
// the third party's own authorization server. That server is discovered and remembered as for connections. Errors are
// *ConfigurationError and the store's.
func (b *Broker) OwnClient(ctx context.Context, s *storage.Server) (storage.OAuthClient, oauth.ClientAuth, error) {
	client, err := b.obtainClient(ctx, *s)
	if err != nil {
		return storage.OAuthClient{}, oauth.ClientAuth{}, err
	}
	auth, err := b.auth(*s, client)
	// A server that learned an assertion may not use it elsewhere. An issuer that an entry names beside an endpoint need not
	// be the endpoint's.
	if auth.Audience = s.Entry.OAuth.TokenEndpoint; auth.Audience == "" {
		auth.Audience = client.Endpoints.Issuer
	}
	return client, auth, err
}

// keeps reports whether the client of an entry's server stays where it was first used. No user agrees to its tokens, so that
// an administrator who turns the entry elsewhere would get the client's secret, or its tokens. Operators may move theirs.
func keeps(e *storage.DirectoryEntry) bool { return e.OwnServer() && e.Source == storage.SourceCustom }

// homeOf returns the origin of an entry's upstream; where no user agrees, all origins that get its tokens.
func homeOf(e *storage.DirectoryEntry) (string, error) {
	if e.OwnServer() {
		return origins(e.URL, e.EventsURL)
	}
	return origin(e.URL)
}

// redirected reports whether an entry names another upstream or authorization server than the ones where its client was first
// used.
func redirected(s storage.Server, c storage.OAuthClient) bool {
	if !keeps(&s.Entry) {
		return false
	}
	here, err := homeOf(&s.Entry)
	named := s.Entry.OAuth
	return err != nil || here != c.Origin || named.Issuer != "" && strings.TrimSuffix(named.Issuer, "/") != strings.TrimSuffix(c.Issuer, "/") ||
		named.TokenEndpoint != "" && !sameOrigin(named.TokenEndpoint, c.Endpoints.TokenEndpoint)
}
