package platformapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of what a request applies, beside that of every body.
const (
	maxDeclared  = 1_000 // files
	maxReference = 4_096
)

// exportView holds the objects of an organization as a file.
type exportView struct {
	Text string `json:"text"` // YAML
}

// plansView holds the changes that files ask for.
type plansView struct {
	Applied bool           `json:"applied"`
	Plans   []declare.Plan `json:"plans"`
}

func exportConfiguration(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	name, err := q.organizationName(q.Context())
	if err != nil {
		return nil, err
	}
	text, err := declare.Export(q.Context(), q.Core.Store, q.Core.Accounts.ConfiguredModels(), q.Organization(), name, q.handler.now())
	return exportView{string(text)}, err
}

// organizationName returns the name of the caller's organization in files.
func (q *request) organizationName(ctx context.Context) (string, error) {
	o, err := q.Core.Store.Organization(ctx, q.Organization())
	if err != nil || o.Slug == "" {
		return q.Organization(), err
	}
	return o.Slug, nil
}

func planConfiguration(q *request) (any, error) { return q.declared(true) }

func applyConfiguration(q *request) (any, error) { return q.declared(false) }

// declared plans what the files of a request ask for, and carries it out unless dry.
func (q *request) declared(dry bool) (any, error) {
	if !dry { // files may enable policies
		if err := q.Fresh(q.handler.now()); err != nil {
			return nil, err
		}
	}
	var files []declare.File
	prune := false
	secrets := make(map[string]seal.Secret)
	if err := q.Read(false, func(o *validate.Object) {
		for _, f := range o.Objects("files", validate.List{Flags: validate.Required, Min: 1, Max: maxDeclared}).Value {
			files = append(files, declare.File{
				Name: f.Text("name", validate.Text{Flags: validate.Required, Min: 1}).Value,
				Text: f.Text("text", validate.Text{Flags: validate.Required | validate.Secret, Max: declare.MaxText}).Value,
			})
		}
		prune = o.Bool("prune", 0).Value
		// The gateway resolves no reference itself: whoever may apply files need not be allowed to read its own.
		for _, s := range o.Objects("secrets", validate.List{Flags: validate.Nullable}).Value {
			reference := s.Text("reference", validate.Text{Flags: validate.Required, Min: 1, Max: maxReference}).Value
			secrets[reference] = s.Secret("value", validate.Text{Flags: validate.Required, Min: 1, Max: maxReference}).Value
		}
	}); err != nil {
		return nil, err
	}
	surroundings := q.surroundings(secrets)
	surroundings.Prune = prune
	plans, err := declare.Run(q.Context(), surroundings, files, dry)
	if err != nil {
		return nil, declaredRefusal(err, files)
	}
	return plansView{Applied: !dry, Plans: plans}, nil
}

func (q *request) surroundings(secrets map[string]seal.Secret) declare.Options {
	return declare.Options{
		Store: q.Core.Store, Keyring: q.Core.Keyring, Now: q.handler.now, By: q.Call.Caller.UserID, MaxMeta: int(q.Core.Sizes.Meta), Issuer: q.knownIssuer, Entries: q.entryRules(), Models: q.Core.Accounts.Base,
		Secret: func(reference string) (seal.Secret, error) {
			secret, ok := secrets[reference]
			if !ok {
				return secret, errors.New("the request gives no value for this reference, in secrets")
			}
			return secret, nil
		},
		Ending: func(ctx context.Context) (context.Context, func(context.Context, []storage.DeletedServer)) {
			ctx, told := connection.Ending(ctx, q.Core.Broker)
			return ctx, func(ctx context.Context, deleted []storage.DeletedServer) {
				told(ctx, deleted)
				for _, d := range deleted {
					q.Core.Streams.End(streams.Owner{Organization: d.Server.OrganizationID, Server: d.Server.ID}, streams.ServerDeleted)
				}
			}
		},
		Organization: func(ctx context.Context, named string) (string, error) {
			own, err := q.organizationName(ctx)
			if err != nil || named == "" || named == own || named == q.Organization() {
				return q.Organization(), err
			}
			return "", fmt.Errorf("the token is for the organization %q: use one of the organization %q", own, named)
		},
		// The request's own record is the first; nothing else is written before it.
		Audit: func(ctx context.Context, _ string) (context.Context, error) { return ctx, nil },
	}
}

// declaredRefusal returns the answer for an error of declare.Run.
func declaredRefusal(err error, files []declare.File) error {
	var wrong declare.Problems
	var references *storage.ReferenceError
	switch {
	case errors.As(err, &wrong):
		var problems validate.Problems
		for _, p := range wrong {
			place := 0
			for i, f := range files {
				if f.Name == p.File {
					place = i
				}
			}
			problems = append(problems, validate.Problem{
				Loc: []any{"body", "files", place, "text"}, Type: validate.ValueError, Msg: p.String(),
				Ctx: map[string]any{"file": p.File, "line": p.Line, "column": p.Column, "path": p.Path, "message": p.Message},
			})
		}
		return problems
	case errors.Is(err, storage.ErrConflict), errors.As(err, &references):
		return routes.Refused(gateway.Conflict, err.Error())
	}
	return err
}
