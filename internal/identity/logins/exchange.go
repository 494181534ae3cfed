package logins

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Tokens is the answer of the token endpoint.
type Tokens struct {
	Login  storage.Login
	Access seal.Secret
	// Refresh is empty for clients that use none.
	Refresh seal.Secret
	// ExpiresIn is the lifetime of the access token.
	ExpiresIn time.Duration
}

// Answer returns the members of the answer (RFC 6749 section 5.1).
func (t *Tokens) Answer() map[string]any {
	answer := map[string]any{"access_token": t.Access.Reveal(), "token_type": "Bearer", "expires_in": int64(t.ExpiresIn / time.Second)}
	if !t.Refresh.Empty() {
		answer["refresh_token"] = t.Refresh.Reveal()
	}
	return answer
}

// Redeem exchanges a code for tokens (RFC 6749 section 4.1.3). A code that comes with any error is spent, and one that
// comes twice ends the login that the first time began. The client must be proven. Errors are *authserver.Error, or the
// store's.
func (s *Server) Redeem(ctx context.Context, client *authserver.Client, form url.Values) (*Tokens, error) {
	refused := authserver.Invalid("invalid_grant", "the code is not good, or not for this request")
	handle, ok := s.credentials.OpenCode(form.Get("code"))
	if !ok {
		return nil, refused
	}
	now := s.Now()
	refreshes := slices.Contains(client.GrantTypes, authserver.GrantRefresh)
	expires := now.Add(AccessLifetime)
	if refreshes {
		expires = now.Add(min(s.Idle, s.Lifetime))
	}
	l, err := s.Store.RedeemLogin(ctx, handle.Organization, handle.Login, now, expires)
	switch {
	case errors.Is(err, storage.ErrReplayed):
		s.replayed(ctx, &l, "code")
		return nil, refused
	case errors.Is(err, storage.ErrNotFound):
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("redeeming a code: %w", err)
	}
	if err := s.fits(&l, client, form); err != nil {
		if _, ending := s.Store.EndLogin(ctx, l.OrganizationID, l.ID, false); ending != nil && !errors.Is(ending, storage.ErrNotFound) {
			return nil, fmt.Errorf("ending a login: %w", ending)
		}
		return nil, err
	}
	return s.issue(ctx, l, refreshes)
}

// replayed tells of a login that was ended because its code or a refresh token came twice: somebody else may hold it.
func (s *Server) replayed(ctx context.Context, l *storage.Login, what string) {
	s.Log.Warn("a "+what+" came twice, its login was ended", "organization", l.OrganizationID, "user", l.UserID, "client", l.ClientID, "login", l.ID)
	if s.Replayed != nil {
		s.Replayed(context.WithoutCancel(ctx), l, what)
	}
}

// fits reports why a code is not for a request.
func (s *Server) fits(l *storage.Login, client *authserver.Client, form url.Values) error {
	switch {
	case l.ClientID != client.ID, l.RedirectURI != form.Get("redirect_uri"), !authserver.Proves(form.Get("code_verifier"), l.Challenge):
		return authserver.Invalid("invalid_grant", "the code is not good, or not for this request")
	}
	return s.sameTarget(l, form)
}

// sameTarget reports when a request asks for another resource than the user agreed to (RFC 8707 section 2.2). The
// gateway's own address has two spellings: clients that parse it write a slash at its end.
func (s *Server) sameTarget(l *storage.Login, form url.Values) error {
	_, err := authserver.Targets(form, func(target string) bool {
		return target == l.Resource || l.Resource == s.Issuer && target == s.Issuer+"/"
	})
	return err
}

// Refresh exchanges a refresh token for new tokens (RFC 6749 section 6). A token that was replaced before ends the login
// (RFC 9700 section 4.14.2). The client must be proven. Errors are *authserver.Error, or the store's.
func (s *Server) Refresh(ctx context.Context, client *authserver.Client, form url.Values) (*Tokens, error) {
	refused := authserver.Invalid("invalid_grant", "the refresh token is not good")
	handle, ok := s.credentials.OpenRefresh(form.Get("refresh_token"))
	if !ok {
		return nil, refused
	}
	now := s.Now()
	// Another client's request changes nothing, so the login is read first.
	l, err := s.Store.Login(ctx, handle.Organization, handle.Login, now)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("reading a login: %w", err)
	case l.ClientID != client.ID:
		return nil, refused
	}
	if err := s.sameTarget(&l, form); err != nil {
		return nil, err
	}
	if s.Stands != nil && !s.Stands(l.Issuer, l.Audience) { // so the client asks its user to log in anew
		return nil, authserver.Invalid("invalid_grant", "the identity provider of the login is not configured any more")
	}
	l, renews, err := s.Store.RefreshLogin(ctx, handle.Organization, handle.Login, handle.Generation, now, s.Idle, grace)
	switch {
	case errors.Is(err, storage.ErrReplayed):
		s.replayed(ctx, &l, "refresh token")
		return nil, refused
	case errors.Is(err, storage.ErrNotFound):
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("refreshing a login: %w", err)
	}
	tokens, err := s.renewed(ctx, l, renews)
	// The client has only the token that it sent. Without this it would come back with one that was replaced long ago. A
	// request that came within the grace of another one leaves that to the other one, which may bring the client its tokens:
	// the token that both sent would stay good, and whoever sends it later would go unnoticed. What is left: where the store
	// fails the first of two while the second gets tokens, two holders of the token are noticed once both have used the next
	// one.
	if err != nil && l.RotatedAt.Equal(now.Truncate(time.Microsecond)) {
		if err := s.Store.LostRefresh(context.WithoutCancel(ctx), l.OrganizationID, l.ID, l.Generation); err != nil {
			s.Log.Error("keeping a refresh token good for its client", "login", l.ID, "error", err)
		}
	}
	return tokens, err
}

// renewed makes the tokens of a login whose refresh token was exchanged. renews reports that the identity provider must be
// asked for new facts before.
func (s *Server) renewed(ctx context.Context, l storage.Login, renews bool) (*Tokens, error) {
	if renews && s.Renew != nil {
		var err error
		if l, err = s.renew(ctx, l); err != nil {
			return nil, err
		}
	}
	// So it is too while another request asks the provider: old facts are no better because somebody else asks.
	if s.Renew != nil && l.SealedRefresh != nil && s.Now().Sub(l.FactsAt) > oldestFacts {
		return nil, &authserver.Error{Code: "temporarily_unavailable", Description: "the identity provider cannot be asked", Status: http.StatusServiceUnavailable}
	}
	return s.issue(ctx, l, true)
}

// renew asks the identity provider for new facts about a login. Without an answer the login keeps its facts. A refresh
// token that the provider hands out is stored whatever else it says, and although the client has gone: the former one may
// be good no more.
func (s *Server) renew(ctx context.Context, l storage.Login) (storage.Login, error) {
	ctx = context.WithoutCancel(ctx)
	plain, err := s.Vault.Open(l.SealedRefresh, seal.LoginPlace(l.OrganizationID, l.UserID, l.ID))
	if err != nil {
		return l, fmt.Errorf("opening a refresh token: %w", err)
	}
	renewed, err := s.Renew(ctx, l, seal.NewSecret(string(plain)))
	switch {
	case errors.Is(err, ErrEnded):
		if _, err := s.Store.EndLogin(ctx, l.OrganizationID, l.ID, false); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return l, fmt.Errorf("ending a login: %w", err)
		}
		return l, authserver.Invalid("invalid_grant", "the identity provider ended the login")
	case err != nil:
		s.Log.Warn("the identity provider could not be asked about a login", "issuer", l.Issuer, "login", l.ID, "error", err)
	default:
		l.Facts, l.FactsAt = renewed.Facts, s.Now().UTC()
		if err := s.setIDToken(&l, renewed.IDToken, renewed.IDTokenExpiresAt); err != nil {
			return l, err
		}
	}
	if !renewed.Refresh.Empty() {
		if l.SealedRefresh, err = s.sealRefresh(&l, renewed.Refresh); err != nil {
			return l, err
		}
	}
	if err := s.Store.RenewLogin(ctx, l); err != nil {
		if errors.Is(err, storage.ErrNotFound) {
			return l, authserver.Invalid("invalid_grant", "the login has ended")
		}
		return l, fmt.Errorf("storing the facts of a login: %w", err)
	}
	return l, nil
}

// These are the claims of access tokens beside those of RFC 9068.
const (
	// ClaimOrganization names the organization.
	ClaimOrganization = "org_id"
	// ClaimLogin names the login (OpenID Connect Front-Channel Logout section 3).
	ClaimLogin = "sid"
)

// issue makes the tokens of a login.
func (s *Server) issue(ctx context.Context, l storage.Login, refreshes bool) (*Tokens, error) {
	t, err := s.access(ctx, l, AccessLifetime, time.Time{})
	if err != nil {
		return nil, err
	}
	if refreshes {
		t.Refresh = seal.NewSecret(s.credentials.Refresh(authserver.Handle{Organization: l.OrganizationID, Login: l.ID, Generation: l.Generation}))
	}
	return t, nil
}

// access makes an access token of a login.
func (s *Server) access(ctx context.Context, l storage.Login, lifetime time.Duration, proven time.Time) (*Tokens, error) {
	now := s.Now()
	expires := now.Add(lifetime)
	if l.ExpiresAt.Before(expires) {
		expires = l.ExpiresAt
	}
	claims := jwt.MapClaims{
		"iss": s.Issuer, "aud": l.Resource, "sub": l.UserID, "client_id": l.ClientID, ClaimOrganization: l.OrganizationID, ClaimLogin: l.ID,
		"iat": now.Unix(), "exp": expires.Unix(), "jti": rand.Text(),
	}
	if !proven.IsZero() {
		claims[token.ClaimAuthTime] = proven.Unix() // RFC 9068 section 2.2.1
	}
	access, err := s.sign(ctx, claims)
	if err != nil {
		return nil, err
	}
	return &Tokens{Login: l, Access: access, ExpiresIn: expires.Sub(now)}, nil
}

// sign signs an access token with the newest key.
func (s *Server) sign(ctx context.Context, claims jwt.MapClaims) (seal.Secret, error) {
	known, err := s.Keys.current(ctx)
	if err != nil {
		return seal.Secret{}, err
	}
	key := known.newest()
	unsigned := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	unsigned.Header["typ"], unsigned.Header["kid"] = "at+jwt", key.id // RFC 9068 section 2.1
	access, err := unsigned.SignedString(key.private)
	if err != nil {
		return seal.Secret{}, fmt.Errorf("signing an access token: %w", err)
	}
	return seal.NewSecret(access), nil
}

// Revoke ends the login of a refresh token of the client's (RFC 7009). A token of another client's is refused, one that is
// not known is revoked already. record is told of the login before it ends; with its error nothing ends, so that a client
// which tries again finds the login. Errors are *authserver.Error, record's, or the store's.
func (s *Server) Revoke(ctx context.Context, client *authserver.Client, text string, record func(context.Context, storage.Login) error) error {
	if strings.Count(text, ".") == 2 { // a JWT: to call it revoked would be a lie (RFC 7009 section 2.2.1)
		return authserver.Invalid("unsupported_token_type", "access tokens end by themselves, within minutes; revoke the refresh token, which ends the login")
	}
	handle, ok := s.credentials.OpenRefresh(text)
	if !ok {
		return nil
	}
	l, err := s.Store.Login(ctx, handle.Organization, handle.Login, s.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound): // it has ended
		return nil
	case err != nil:
		return fmt.Errorf("reading a login: %w", err)
	case l.ClientID != client.ID:
		return authserver.Invalid("invalid_grant", "the token is another client's")
	}
	if err := record(ctx, l); err != nil {
		return err
	}
	if _, err := s.Store.EndLogin(ctx, l.OrganizationID, l.ID, false); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("ending a login: %w", err)
	}
	return nil
}

// Genuine reports whether a request to the token or revocation endpoint holds a code or a refresh token that this server
// made, whether it is still good or not. Only then a client's metadata document is worth fetching: anybody can send the
// address of a document.
func (s *Server) Genuine(form url.Values) bool {
	_, code := s.credentials.OpenCode(form.Get("code"))
	_, refresh := s.credentials.OpenRefresh(form.Get("refresh_token"))
	_, revoked := s.credentials.OpenRefresh(form.Get("token"))
	return code || refresh || revoked
}
