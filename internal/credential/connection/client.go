package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// ClientMetadata returns our client-id metadata document. It describes our client for every provider that takes the
// address of such a document as client_id.
func (b *Broker) ClientMetadata() ([]byte, error) { return oauth.ClientDocument(b.app) }

// errIssuerChanged: the upstream, or its entry, now names another authorization server than the one where we have a client, or
// the entry another upstream.
var errIssuerChanged = errors.New("the upstream names another issuer than before, or its entry another place")

// obtainClient returns the OAuth client for a server: the administrator's, the stored one, our metadata document, or a
// newly registered one, in this order. The first success activates a pending server.
func (b *Broker) obtainClient(ctx context.Context, s storage.Server) (storage.OAuthClient, error) {
	ctx, cancel := b.apart(ctx, providerDeadline)
	defer cancel()
	// Two users who connect at the same moment should not register two clients. On two nodes they may: the store keeps
	// one.
	unlock, err := b.clients.lock(ctx, s.ID)
	if err != nil {
		return storage.OAuthClient{}, &ConfigurationError{Cause: err}
	}
	defer unlock()

	stored, err := b.store.OAuthClient(ctx, s.OrganizationID, s.ID)
	have := err == nil
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.OAuthClient{}, fmt.Errorf("reading OAuth client: %w", err)
	}
	moved := have && redirected(s, stored)
	if moved {
		if err := b.leaveIssuer(ctx, s, stored); err != nil {
			return storage.OAuthClient{}, err
		}
	}
	usable := have && !moved && b.usable(s, stored)
	sight := sightOf(s, stored)
	if usable && s.Status == storage.ServerActive && b.sightings.recent(serverKeyOf(s), sight, b.now()) {
		return stored, nil
	}

	roots, err := directory.TrustedRoots(s.Entry.Options.TrustedCA)
	if err != nil {
		return storage.OAuthClient{}, &ConfigurationError{Cause: err}
	}
	d, err := b.oauth.Discover(ctx, oauth.Target{
		URL: s.Entry.URL, Known: s.Entry.OAuth, Scopes: s.Entry.Scopes, Issuer: stored.Issuer, Grant: oauth.GrantOf(&s.Entry), Roots: roots,
	})
	if err != nil {
		// The existing client does not depend on an answer of the upstream just now.
		if usable && providerDown(err) {
			return stored, nil
		}
		return storage.OAuthClient{}, &ConfigurationError{Cause: err}
	}
	if have && stored.Issuer != d.Endpoints.Issuer {
		if err := b.leaveIssuer(ctx, s, stored); err != nil {
			return storage.OAuthClient{}, err
		}
		usable = false // the administrator has pointed the server to another place
	}
	return b.settleClient(ctx, s, d, stored, usable)
}

// leaveIssuer handles a server that names another issuer than the one of its stored client. Only the administrator may
// have caused that, otherwise the server is out of order.
func (b *Broker) leaveIssuer(ctx context.Context, s storage.Server, stored storage.OAuthClient) error {
	if stored.Refused { // a stored Refused would let tokens go on being used
		stored.Refused = false
		if err := b.store.PutOAuthClient(ctx, stored, stored.ClientID); err != nil {
			return fmt.Errorf("storing OAuth client: %w", err)
		}
	}
	if sameClient(s, stored) && (keeps(&s.Entry) || s.Entry.OAuth.Issuer == "" && learnedHere(s, stored)) {
		// An attacker who took over the upstream would otherwise get our client secret and users' consent at an
		// issuer of their own.
		b.failServer(ctx, s, errIssuerChanged)
		return &ConfigurationError{Cause: errIssuerChanged}
	}
	return nil
}

// settleClient returns the client for the discovered data, and activates a pending server. It keeps a usable client
// that the provider still knows.
func (b *Broker) settleClient(ctx context.Context, s storage.Server, d oauth.Discovery, stored storage.OAuthClient, usable bool) (storage.OAuthClient, error) {
	if m := s.Entry.Options.AuthMethod; m != "" {
		d.AuthMethods = []string{m}
	}
	former := stored.ClientID
	usable = usable && b.stillKnown(ctx, s, stored)
	if !usable {
		stored = storage.OAuthClient{}
	}
	c, err := b.putClient(ctx, s, d, stored, former)
	if err != nil {
		return storage.OAuthClient{}, err
	}
	if s.Status == storage.ServerPending {
		if err := b.activate(ctx, s); err != nil {
			return storage.OAuthClient{}, err
		}
	}
	b.sightings.note(serverKeyOf(s), sightOf(s, c), b.now())
	return c, nil
}

// putClient makes and stores our client for the discovered data. It keeps the client in stored if that one was
// registered. A stored client that cannot be used any more is passed as the zero value. former is the client id that
// was stored, in either case. If another node has stored a client meanwhile, users already connect with that client,
// and we use it too.
func (b *Broker) putClient(ctx context.Context, s storage.Server, d oauth.Discovery, stored storage.OAuthClient, former string) (storage.OAuthClient, error) {
	here, err := homeOf(&s.Entry)
	if err != nil {
		return storage.OAuthClient{}, &ConfigurationError{Cause: err}
	}
	c := storage.OAuthClient{
		OrganizationID: s.OrganizationID, ServerID: s.ID, Issuer: d.Endpoints.Issuer, RedirectURI: b.app.RedirectURI, Origin: here,
		Endpoints: d.Endpoints, Scopes: d.Scopes, IssuerInResponse: d.IssuerInResponse, CreatedAt: b.now().UTC(),
	}
	if stored.Kind == storage.ClientRegistered {
		c.Kind, c.ClientID, c.SealedSecret, c.AuthMethod = stored.Kind, stored.ClientID, stored.SealedSecret, stored.AuthMethod
		c.SecretExpiresAt = stored.SecretExpiresAt
	} else if err := b.newClient(ctx, s, d, &c); errors.Is(err, storage.ErrUnavailable) {
		return storage.OAuthClient{}, err // the configured secret cannot be read just now
	} else if err != nil {
		return storage.OAuthClient{}, &ConfigurationError{Cause: err}
	}
	if c.ClientID == stored.ClientID { // facts learned by asking are kept
		c.RefreshResourceOff, c.Refused = stored.RefreshResourceOff, stored.Refused
		if s.Entry.Options.AuthMethod == "" && (c.AuthMethod == oauth.AuthNone) == (stored.AuthMethod == oauth.AuthNone) {
			c.AuthMethod = stored.AuthMethod
		}
	}
	if sameRecord(c, stored) {
		return c, nil
	}
	err = b.store.PutOAuthClient(ctx, c, former)
	if errors.Is(err, storage.ErrConflict) {
		return b.othersClient(ctx, s, d)
	}
	if err != nil {
		return storage.OAuthClient{}, fmt.Errorf("storing OAuth client: %w", err)
	}
	return c, nil
}

// othersClient returns the client that another node stored while we made one. Ours is forgotten: nothing was issued to
// it.
func (b *Broker) othersClient(ctx context.Context, s storage.Server, d oauth.Discovery) (storage.OAuthClient, error) {
	c, err := b.store.OAuthClient(ctx, s.OrganizationID, s.ID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.OAuthClient{}, fmt.Errorf("reading OAuth client: %w", err)
	}
	if err != nil || c.Issuer != d.Endpoints.Issuer || !b.usable(s, c) {
		return storage.OAuthClient{}, &storage.UnavailableError{Reason: "the server's OAuth client is just being changed"}
	}
	return c, nil
}

// newClient fills in the identity of our client at the provider.
func (b *Broker) newClient(ctx context.Context, s storage.Server, d oauth.Discovery, c *storage.OAuthClient) error {
	app := b.app
	var err error
	if app.Roots, err = directory.TrustedRoots(s.Entry.Options.TrustedCA); err != nil {
		return err
	}
	if s.ClientID != "" {
		client, err := b.configured(s)
		if err != nil {
			return err
		}
		switch known := client.Key != nil || !client.Secret.Empty(); {
		case s.Entry.Options.AuthMethod == oauth.AuthNone:
			client = oauth.ClientAuth{}
		case !known && !s.Entry.Public && s.Entry.Provider != storage.ProviderWorkloadIdentity:
			return errors.New("a client without a secret is configured, and the directory entry is not public")
		}
		app.ConfiguredID, app.ConfiguredSecret, app.ConfiguredKey = s.ClientID, client.Secret, client.Key
	}
	r, err := b.oauth.ObtainClient(ctx, d, app)
	if err != nil {
		return err
	}
	c.Kind, c.ClientID, c.AuthMethod, c.SecretExpiresAt = r.Kind, r.ClientID, r.AuthMethod, r.ExpiresAt
	if r.Kind == storage.ClientRegistered {
		b.proofs.note(serverKeyOf(s), r.ClientID, b.now())
	}
	// A configured secret stays where the administrator put it: in the server record.
	if r.Kind != storage.ClientConfigured && !r.Secret.Empty() {
		c.SealedSecret, err = b.keyring.Seal([]byte(r.Secret.Reveal()), oauthClientAD(s.OrganizationID, s.ID))
	}
	return err
}

// usable reports whether we can use the stored client at the provider.
func (b *Broker) usable(s storage.Server, c storage.OAuthClient) bool {
	if c.RedirectURI != b.app.RedirectURI || !sameClient(s, c) {
		return false
	}
	if !c.SecretExpiresAt.IsZero() && !b.now().Add(attemptLifetime).Before(c.SecretExpiresAt) {
		return false // the secret would expire before the code comes
	}
	if c.Kind == storage.ClientRegistered && c.Refused {
		return false
	}
	if c.Kind == storage.ClientMetadata && c.ClientID != b.app.MetadataURL {
		return false
	}
	return s.Entry.OAuth.Issuer == "" || s.Entry.OAuth.Issuer == c.Issuer
}

// sameClient reports whether c still matches the server record: its configured client, or none of its own.
func sameClient(s storage.Server, c storage.OAuthClient) bool {
	if s.ClientID != "" {
		return c.Kind == storage.ClientConfigured && c.ClientID == s.ClientID
	}
	return c.Kind != storage.ClientConfigured
}

func sameRecord(a, b storage.OAuthClient) bool {
	return a.Issuer == b.Issuer && a.ClientID == b.ClientID && a.AuthMethod == b.AuthMethod && a.Kind == b.Kind &&
		a.RedirectURI == b.RedirectURI && a.Endpoints == b.Endpoints && a.Origin == b.Origin && slices.Equal(a.Scopes, b.Scopes) &&
		a.IssuerInResponse == b.IssuerInResponse && a.SecretExpiresAt.Equal(b.SecretExpiresAt) &&
		a.RefreshResourceOff == b.RefreshResourceOff && a.Refused == b.Refused
}

// learnedHere reports whether the issuer of c may have been learned at the server's own origin. Then the administrator
// has not pointed the server to another place since. If the entry names the resource, the resource proves nothing,
// because the entry may name any URI. A client from before the origin was stored is judged by a discovered resource,
// which is of the server's origin (RFC 9728 section 3.3).
func learnedHere(s storage.Server, c storage.OAuthClient) bool {
	if c.Origin != "" {
		return sameOrigin(s.Entry.URL, c.Origin)
	}
	_, err := origin(c.Endpoints.Resource)
	return err != nil || c.Endpoints.Resource == s.Entry.OAuth.Resource || sameOrigin(s.Entry.URL, c.Endpoints.Resource)
}

func sameOrigin(a, b string) bool {
	x, err := origin(a)
	if err != nil {
		return false
	}
	y, err := origin(b)
	return err == nil && x == y
}

// auth returns the authentication of our client at the provider.
func (b *Broker) auth(s storage.Server, c storage.OAuthClient) (oauth.ClientAuth, error) {
	a := oauth.ClientAuth{ID: c.ClientID, Method: c.AuthMethod}
	var err error
	if a.Roots, err = directory.TrustedRoots(s.Entry.Options.TrustedCA); err != nil {
		return a, err
	}
	switch {
	case c.Kind == storage.ClientConfigured:
		var known oauth.ClientAuth
		known, err = b.configured(s)
		a.Secret, a.Key = known.Secret, known.Key
	case c.SealedSecret != nil:
		a.Secret, err = b.openSecret(c.SealedSecret, oauthClientAD(s.OrganizationID, s.ID))
	}
	switch method := s.Entry.Options.AuthMethod; {
	case method == oauth.AuthNone:
		a.Method, a.Secret, a.Key = method, seal.Secret{}, nil
	case method != "" && !a.Secret.Empty():
		a.Method = method
	}
	return a, err
}

// configured returns what proves the client that an administrator gave: a secret or a key, or neither.
func (b *Broker) configured(s storage.Server) (a oauth.ClientAuth, err error) {
	if s.SealedClientSecret == nil {
		return a, nil
	}
	plain, err := b.openSecret(s.SealedClientSecret, ClientSecretAD(s.OrganizationID, s.ID))
	if err != nil {
		return a, err
	}
	return a, a.SetCredential(plain)
}

func (b *Broker) openSecret(sealed []byte, ad seal.AD) (seal.Secret, error) {
	plain, err := b.keyring.Open(sealed, ad)
	if err != nil {
		return seal.Secret{}, fmt.Errorf("opening client secret: %w", err)
	}
	defer clear(plain)
	return seal.NewSecret(string(plain)), nil
}

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

func (b *Broker) activate(ctx context.Context, s storage.Server) error {
	if _, err := b.store.UpdateServer(ctx, s.OrganizationID, s.ID, func(s *storage.Server) error {
		s.Status = storage.ServerActive
		return nil
	}); err != nil {
		return fmt.Errorf("activating server: %w", err)
	}
	return nil
}

// failServer notes that the provider and we do not agree on our client's identity.
func (b *Broker) failServer(ctx context.Context, s storage.Server, cause error) {
	b.log.Error("server is out of order", "organization", s.OrganizationID, "server", s.Slug, "reason", cause.Error())
	if _, err := b.store.UpdateServer(ctx, s.OrganizationID, s.ID, func(s *storage.Server) error {
		s.Status = storage.ServerError
		return nil
	}); err != nil {
		b.log.Error("noting server status", "organization", s.OrganizationID, "server", s.Slug, "error", err.Error())
	}
}
