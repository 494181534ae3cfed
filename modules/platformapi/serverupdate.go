package platformapi

import (
	"encoding/json"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// serverEdit holds the fields of a PUT about a server: only members that are present change.
type serverEdit struct {
	name         validate.Field[string]
	slug         validate.Field[string]
	clientID     validate.Field[string]
	clientSecret validate.Field[seal.Secret] // or its key, encoded
	meta         validate.Field[json.RawMessage]

	isKey        bool   // clientSecret is a key
	sealedSecret []byte // of clientSecret
}

func updateServer(q *request) (any, error) {
	id := q.ID("server_id")
	var edit serverEdit
	if err := q.Read(false, func(o *validate.Object) {
		edit.name = o.Name(0, directory.MaxName)
		edit.slug = serveredit.Slug(o, 0)
		edit.clientID = serveredit.ClientID(o)
		edit.clientSecret, edit.isKey = serveredit.ClientProof(o)
		edit.meta = o.Document("meta", 0, int(q.Core.Sizes.Meta))
	}); err != nil {
		return nil, err
	}
	var err error
	if edit.sealedSecret, err = q.sealClientSecret(id, edit.clientSecret.Value); err != nil {
		return nil, err
	}
	if _, err := q.Core.Store.UpdateServerAndClient(q.Context(), q.Organization(), id, func(s *storage.Server) (bool, error) {
		forget, err := edit.apply(s)
		s.UpdatedAt = q.handler.now()
		return forget, err
	}); err != nil {
		return nil, serverConflict(routes.Missing(err, errNoServer))
	}
	view, err := q.view(serverRef{id: id})
	if err != nil {
		return nil, err
	}
	return q.serverView(view), nil
}

// apply changes a server. It reports whether the stored facts about the gateway's OAuth client are no longer true.
func (e *serverEdit) apply(s *storage.Server) (forgetClient bool, err error) {
	if e.name.Set() {
		s.Name = e.name.Value
	}
	if e.slug.Set() {
		s.Slug = e.slug.Value
	}
	if e.meta.Set() {
		s.Meta = e.meta.Value
	}
	return e.applyCredentials(s)
}

func (e *serverEdit) applyCredentials(s *storage.Server) (forgetClient bool, err error) {
	former := *s
	setID := e.clientID.Present
	switch value := e.clientID.Value; {
	case !serveredit.LooksObfuscated(value):
	case value == serveredit.Obfuscated(s.ClientID):
		setID = false // a record that was read, changed and sent back
	default:
		return false, validate.Problems{{Loc: []any{"body", "client_id"}, Type: validate.ValueError, Msg: serveredit.MsgObfuscated}}
	}
	if err := serveredit.CheckProof(s.Entry, e.clientSecret.Set(), e.isKey); err != nil {
		return false, err
	}
	if setID {
		s.ClientID = e.clientID.Value
	}
	own := s.Entry.OwnServer()
	if own && s.ClientID != former.ClientID {
		s.SealedClientSecret = nil // no user has to agree to where another client's tokens go, and the secret with them
	}
	if e.clientSecret.Present {
		s.SealedClientSecret = e.sealedSecret
	}
	hadSecret, hasSecret := former.SealedClientSecret != nil, s.SealedClientSecret != nil
	if s.ClientID == former.ClientID && !e.clientSecret.Set() && hadSecret == hasSecret {
		return false, nil
	}
	s.Status = serveredit.Lifecycle(s.Entry, s.ClientID != "", hasSecret)
	if e.clientID.Null && e.clientSecret.Null && serveredit.UsesOAuth(s.Entry) {
		s.Status = storage.ServerPending
	}
	// Users stay connected when a secret is merely replaced, also when that ends an error status: the provider had refused
	// the former secret. Any other change makes another client, or another way to authenticate as it. A client that is
	// entered anew to end an error status may be one of another provider: it starts afresh.
	return s.ClientID != former.ClientID || hadSecret != hasSecret || (former.Status == storage.ServerError && (setID || own)), nil
}
