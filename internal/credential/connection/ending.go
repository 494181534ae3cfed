package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// ending is one write that may end credentials. The messages for the providers are stored in the same transaction. So a
// crash never leaves valid tokens that nobody knows any more.
type ending struct {
	b *Broker
	// spare reports that the tokens are already worthless at the provider.
	spare bool
	// sealed replaces the stored credential. nil: the stored credential is the one that ends.
	sealed []byte

	// ends holds the result of the last run, because the transaction may run again.
	ends map[storage.ConnectionKey]*end
}

// end describes the fate of the tokens of one connection.
type end struct {
	tell []telling
	late bool    // includes tokens that were not stored yet
	lost []error // reasons why tokens cannot be revoked
}

// telling holds a message for a provider, and the row that stores it.
type telling struct {
	row  storage.Revocation
	what *sealedRevocation
}

func (b *Broker) newEnding() *ending {
	return &ending{b: b, ends: make(map[storage.ConnectionKey]*end)}
}

// in returns a context for the write.
func (e *ending) in(ctx context.Context) context.Context {
	return storage.WithEnding(ctx, e.revocations)
}

// told must be called after the write is committed. It sends the messages to the providers in the background.
func (e *ending) told() {
	for key, done := range e.ends {
		if done.late {
			e.b.unsaved.forget(key)
		}
		for _, cause := range done.lost {
			e.b.notRevoked(storage.Connection{ConnectionKey: key}, cause)
		}
		for _, t := range done.tell {
			e.b.tellSoon(t.row, t.what)
		}
	}
}

// revocations implements storage.Ending. Tokens that cannot be revoked are counted, and do not keep anybody from ending
// the connection. But if a key cannot be looked up just now, the connection cannot be ended.
func (e *ending) revocations(_ context.Context, ended storage.Ended) ([]storage.Revocation, error) {
	now := new(end)
	for _, add := range []func(storage.Ended, *end) error{e.addUnsaved, e.addStored} {
		switch err := add(ended, now); {
		case errors.Is(err, storage.ErrUnavailable):
			return nil, fmt.Errorf("finding out what is to be revoked: %w", err)
		case err != nil:
			now.lost = append(now.lost, err)
		}
	}
	e.ends[ended.Former.ConnectionKey] = now
	var rows []storage.Revocation
	for _, t := range now.tell {
		rows = append(rows, t.row)
	}
	return rows, nil
}

// addUnsaved adds tokens that this process got for the connection and that the store did not take.
func (e *ending) addUnsaved(ended storage.Ended, now *end) error {
	late, ok := e.b.unsaved.get(ended.Former.ConnectionKey)
	if !ok || e.spare || !e.b.spares(ended.By, late.client, late.issued, late.server.Entry.Options.IndependentTokens) {
		return nil
	}
	now.late = true
	auth, err := e.b.auth(late.server, late.client)
	if err != nil {
		return err
	}
	of := tokensOf{ended.Former.ConnectionKey, late.server, late.client}
	return e.add(now, of, late.client.Endpoints.RevocationEndpoint, auth, grant{Access: late.tokens.Access, Refresh: late.tokens.Refresh, Issued: late.issued})
}

// addStored adds the tokens that the connection holds.
func (e *ending) addStored(ended storage.Ended, now *end) error {
	former := ended.Former
	if e.spare || former.Kind != storage.ProviderOAuth2 {
		return nil
	}
	if e.sealed != nil {
		former.SealedCredential = e.sealed
	}
	g, err := e.b.openSealed(former)
	if err != nil {
		return err
	}
	by := storage.OAuthClient{Kind: g.Issued.Kind, ClientID: former.ClientID, Issuer: former.Issuer}
	switch {
	case e.b.spares(ended.By, by, g.Issued, ended.Server.Entry.Options.IndependentTokens):
	case former.ClientID == ended.By.ClientID:
		return nil // most providers end these tokens when the new ones end
	default:
		return errors.New("they were issued to a former client, and to revoke them may end the new ones")
	}
	endpoint, auth, err := e.speaker(ended, g.Issued)
	if err != nil {
		return err
	}
	return e.add(now, tokensOf{former.ConnectionKey, ended.Server, by}, endpoint, auth, g)
}

// spares reports whether the tokens of client can be revoked without ending the tokens that replace them. then holds
// what their grant remembers. With one token most providers end all tokens of the same user and client (RFC 7009
// section 2.1), including those of a new connection. Another provider does not end them. Nor does the same provider if
// we have registered again and it knows us as another client. Clients that administrators name are different: several
// may belong to one project, and some providers end all tokens of the project.
func (b *Broker) spares(by *storage.Connection, client storage.OAuthClient, then issued, independent bool) bool {
	switch {
	case by == nil, by.Kind != storage.ProviderOAuth2, independent, !b.sameProvider(by, client.Issuer, then.Origins):
		return true
	case by.ClientID == client.ClientID:
		return false
	}
	return client.Kind == storage.ClientRegistered || client.Kind == storage.ClientMetadata
}

// sameProvider reports whether a connection's tokens are of the provider with an issuer and endpoints at origins. An
// administrator may leave the issuer out of an entry, add it, or move the endpoints without it. Then the endpoints tell.
func (b *Broker) sameProvider(c *storage.Connection, issuer, origins string) bool {
	if (c.Issuer == "" || issuer == "") && origins != "" {
		if g, err := b.openSealed(*c); err == nil && g.Issued.Origins != "" {
			return slices.ContainsFunc(strings.Fields(origins), func(o string) bool {
				return slices.Contains(strings.Fields(g.Issued.Origins), o)
			})
		}
	}
	return c.Issuer == issuer
}

// speaker returns the client that the tokens of a connection were issued to, and the endpoint for revoking them: those of
// the server while it stands at the provider, otherwise those that the connection remembers. No other client gets to know
// the tokens.
func (e *ending) speaker(ended storage.Ended, then issued) (endpoint string, auth oauth.ClientAuth, err error) {
	known := ended.Client != nil && issuedTo(ended.Former, *ended.Client)
	switch {
	case known && then.stands(ended):
		auth, err = e.b.auth(ended.Server, *ended.Client)
		return ended.Client.Endpoints.RevocationEndpoint, auth, err
	case known && then.Endpoint == "":
		return "", auth, errEndpointMoved
	}
	auth, err = e.remembered(ended, then)
	return then.Endpoint, auth, err
}

// remembered returns the client as it was when the tokens were issued. A secret that an administrator configured is read
// from the server. If it has been replaced since, it may be for another provider, and is not sent to this one.
func (e *ending) remembered(ended storage.Ended, then issued) (oauth.ClientAuth, error) {
	auth := oauth.ClientAuth{ID: ended.Former.ClientID, Secret: then.Secret, Method: then.Method}
	if !then.Elsewhere {
		if !then.known() {
			return auth, errClientUnknown
		}
		return auth, nil
	}
	now, err := e.b.configured(ended.Server)
	if err != nil {
		return auth, err
	}
	if !then.had(auth.ID, now.Secret) {
		return auth, errClientUnknown
	}
	auth.Secret = now.Secret
	return auth, nil
}

func (e *ending) add(now *end, of tokensOf, endpoint string, auth oauth.ClientAuth, g grant) error {
	told, err := toldOf(of, endpoint, auth, g)
	if err != nil || told == nil {
		return err
	}
	v, err := e.b.sealRevocation(of.key.OrganizationID, told)
	if err != nil {
		return err
	}
	now.tell = append(now.tell, telling{row: v, what: told})
	return nil
}

// issuedTo reports whether the connection's tokens were issued to the client. No other client gets to know them.
func issuedTo(c storage.Connection, client storage.OAuthClient) bool {
	return c.Kind == storage.ProviderOAuth2 && c.ClientID == client.ClientID && c.Issuer == client.Issuer
}

func (b *Broker) notRevoked(c storage.Connection, cause error) {
	b.count(NotRevoked)
	b.log.Warn("tokens cannot be revoked", "organization", c.OrganizationID, "server", c.ServerID, "error", cause.Error())
}
