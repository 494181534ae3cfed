// Package agentedit reads what administrators write about agents: OAuth clients that policies can name. It asks no store.
package agentedit

import (
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of an application's members.
const (
	maxExternalID = 255 // of the client id of a token
	maxCallback   = 2048
	maxCallbacks  = 100
)

// Channel is the rule for the place where a human decides on an agent's held calls.
var Channel = validate.Text{Flags: validate.Nullable, Enum: []string{string(storage.ChannelInBand), string(storage.ChannelOutOfBand)}}

// Application reads an application, without its issuer.
func Application(o *validate.Object) storage.Application {
	text := func(name string, r validate.Text) string { return o.Text(name, r).Value }
	a := storage.Application{
		ExternalID:       text("external_id", validate.Text{Flags: validate.Required, Min: 1, Max: maxExternalID, Pattern: serveredit.ClientText}),
		Name:             text("name", validate.Text{Flags: validate.Nullable, Max: 255}),
		Description:      text("description", validate.Text{Flags: validate.Nullable}),
		Public:           o.Bool("public", 0).Value,
		DCR:              o.Bool("dcr", 0).Value,
		PostLoginSuccess: o.Bool("post_login_success", 0).Value,
		Callbacks:        o.Texts("callbacks", validate.List{Max: maxCallbacks}, validate.Text{Min: 1, Max: maxCallback}).Value,
	}
	if a.Name == "" {
		a.Name = a.ExternalID
	}
	return a
}

// Settings reads what is said about an agent beside its application.
func Settings(o *validate.Object, a *storage.Agent) {
	a.WriteConfirmationsRequired = o.Bool("write_confirmations_required", 0).Value
	a.LLMGatewayEnabled = o.Bool("llm_gateway_enabled", 0).Or(false)
	a.ApprovalChannel = storage.ApprovalChannel(o.Text("approval_channel", Channel).Value)
}
