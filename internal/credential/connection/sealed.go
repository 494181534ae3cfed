package connection

import (
	"encoding/json"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// sealedGrant holds a grant in the form that is sealed into a connection. Its secrets are plain, so it exists only
// while the grant is sealed or opened.
type sealedGrant struct {
	ID       string `json:"id"`
	Access   string `json:"access_token,omitempty"`
	Refresh  string `json:"refresh_token,omitempty"`
	Asked    string `json:"asked,omitempty"`
	Key      string `json:"key,omitempty"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Forced   bool   `json:"forced,omitempty"`
	Unusable bool   `json:"unusable,omitempty"`

	ClientKind   string `json:"client_kind,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
	Elsewhere    bool   `json:"client_secret_elsewhere,omitempty"`
	SecretSum    string `json:"client_secret_sum,omitempty"`
	ClientMethod string `json:"client_method,omitempty"`
	RevokeAt     string `json:"revoke_at,omitempty"`
	Provider     string `json:"provider,omitempty"` // origins of its endpoints
}

func (g grant) encode() ([]byte, error) {
	return json.Marshal(sealedGrant{
		ID: g.ID, Access: g.Access.Reveal(), Refresh: g.Refresh.Reveal(), Asked: g.Asked, Key: g.Key.Reveal(),
		Username: g.Username.Reveal(), Password: g.Password.Reveal(), Forced: g.Forced, Unusable: g.Unusable,
		ClientKind: string(g.Issued.Kind), ClientSecret: g.Issued.Secret.Reveal(), ClientMethod: g.Issued.Method, RevokeAt: g.Issued.Endpoint,
		Elsewhere: g.Issued.Elsewhere, SecretSum: g.Issued.Sum.Reveal(), Provider: g.Issued.Origins,
	})
}

func decodeGrant(plain []byte) (grant, error) {
	var s sealedGrant
	if err := json.Unmarshal(plain, &s); err != nil {
		return grant{}, err
	}
	return grant{
		ID: s.ID, Access: seal.NewSecret(s.Access), Refresh: seal.NewSecret(s.Refresh), Asked: s.Asked, Key: seal.NewSecret(s.Key),
		Username: seal.NewSecret(s.Username), Password: seal.NewSecret(s.Password), Forced: s.Forced, Unusable: s.Unusable,
		Issued: issued{
			Kind: storage.OAuthClientKind(s.ClientKind), Endpoint: s.RevokeAt, Method: s.ClientMethod, Secret: seal.NewSecret(s.ClientSecret),
			Elsewhere: s.Elsewhere, Sum: seal.NewSecret(s.SecretSum), Origins: s.Provider,
		},
	}, nil
}

// sealedAttempt holds an attempt in the form that is sealed into its row.
type sealedAttempt struct {
	Verifier      string `json:"verifier"`
	RedirectURI   string `json:"redirect_uri"`
	ReturnURL     string `json:"return_url,omitempty"`
	ClientID      string `json:"client_id"`
	Origin        string `json:"origin"`
	Resource      string `json:"resource"`
	Scope         string `json:"scope,omitempty"`
	Answer        string `json:"answer,omitempty"`
	TokenEndpoint string `json:"token_endpoint,omitempty"`
}

func (a attempt) encode() ([]byte, error) {
	return json.Marshal(sealedAttempt{
		Verifier: a.Verifier.Reveal(), RedirectURI: a.RedirectURI, ReturnURL: a.ReturnURL, ClientID: a.ClientID, Origin: a.Origin,
		Resource: a.Resource, Scope: a.Scope, Answer: a.Answer.Reveal(), TokenEndpoint: a.TokenEndpoint,
	})
}

func decodeAttempt(plain []byte) (attempt, error) {
	var s sealedAttempt
	if err := json.Unmarshal(plain, &s); err != nil {
		return attempt{}, err
	}
	return attempt{
		Verifier: seal.NewSecret(s.Verifier), RedirectURI: s.RedirectURI, ReturnURL: s.ReturnURL, ClientID: s.ClientID, Origin: s.Origin,
		Resource: s.Resource, Scope: s.Scope, Answer: seal.NewSecret(s.Answer), TokenEndpoint: s.TokenEndpoint,
	}, nil
}
