package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// These are the texts for models and users about held calls. None of them says that a call was executed when none was.
const (
	textNeeded    = "This call needs its user's approval"
	textTooMany   = "Denied: too many calls of this client wait for approval already. Nothing was executed; decide on those first."
	textTooOften  = "Denied: approval of too many calls of this client was asked for within a few minutes. Nothing was executed; try again later."
	textTooLarge  = "Denied: the arguments of this call are too large for a person to approve (more than 64 KiB). Nothing was executed."
	textSaidNo    = "Denied: the user did not approve this call. Nothing was executed."
	textExpired   = "Denied: nobody approved this call in time. Nothing was executed; make the call again to ask again."
	textSpent     = "Denied: the approval of this call was used, or is not good for this call any longer. Make the call anew to ask again."
	textDeniedNow = "Denied by policy. Nothing was executed."
	textTrouble   = "Denied: the gateway cannot tell at the moment whether this call may be made. Nothing was executed."
)

// textPage returns the text for a client that cannot ask its user, with the address at which the user or others decide. It
// names no page that does not exist.
func textPage(core *app.Core, a *storage.Approval) string {
	if len(a.Approvers) > 0 {
		return textOthers(core, a)
	}
	id := a.ID
	if !core.ApprovalPage && len(core.ApprovalClients) == 0 {
		return "This call needs its user's approval, and nothing was executed. The user can give it neither in this client nor elsewhere: " +
			"whoever runs this gateway has to set up a `login_client`, which brings a page to decide on. Do not try again before."
	}
	where := "at " + core.ApprovalURL(id)
	if !core.ApprovalPage {
		where = "with the application that is set up for approvals (/api/approvals/" + id + ")"
	}
	return fmt.Sprintf("This call waits for its user's approval, and nothing was executed yet. The user decides %s within %.0f minutes. "+
		"Once they have approved, make exactly the same call again.", where, approval.DecideFor.Minutes())
}

// textOthers returns the text for a client whose call other people decide.
func textOthers(core *app.Core, a *storage.Approval) string {
	who := approval.People(a.Approvers)
	if !core.ApprovalPage && len(core.ApprovalClients) == 0 {
		return "This call needs the approval of " + who + ", and nothing was executed. They cannot give it: " +
			"whoever runs this gateway has to set up a `login_client`, which brings a page to decide on. Do not try again before."
	}
	where := "at " + core.ApprovalURL(a.ID)
	if !core.ApprovalPage {
		where = "with the application that is set up for approvals (/api/approvals/" + a.ID + ")"
	}
	return fmt.Sprintf("This call waits for the approval of %s, and nothing was executed yet. Its own user cannot give it. "+
		"They decide %s within %.0f minutes. Once they have approved, make exactly the same call again.", who, where, approval.DecideFor.Minutes())
}

// refusalOf returns the text for a call whose user cannot be asked; "" for other errors.
func refusalOf(err error) string {
	switch {
	case errors.Is(err, storage.ErrTooManyPending):
		return textTooMany
	case errors.Is(err, storage.ErrTooManyAsked):
		return textTooOften
	case errors.Is(err, approval.ErrTooLarge):
		return textTooLarge
	}
	return ""
}

// textOf returns the text for a call whose approval can be neither waited for nor used.
func textOf(status storage.ApprovalStatus) string {
	switch status {
	case storage.ApprovalDenied:
		return textSaidNo
	case storage.ApprovalExpired:
		return textExpired
	}
	return textSpent
}

// These are the lengths of the parts of a question, in bytes.
const (
	shownName      = 200
	shownArguments = 2_000
)

// question returns the question to the user: the caller, and the action that it wants. No part of it can be hidden or
// look like another part (attack M17).
func (h *held) question(a *storage.Approval) string {
	client, _ := visible.Beginning(a.Client, shownName)
	server, _ := visible.Beginning(h.call.Server.Name, shownName)
	tool, _ := visible.Beginning(a.Tool, shownName)
	text := fmt.Sprintf("Allow the agent %q to run the tool %q of the server %q once?", client, tool, server)
	canonical, err := approval.CanonicalArguments(h.message.Arguments)
	if err != nil {
		return text
	}
	arguments, whole := laidOut(canonical)
	beside, err := approval.CanonicalBeside(h.message.Params, h.Modern())
	if err != nil {
		return text
	}
	besideIt, all := laidOut(beside)
	if !whole || !all {
		text += "\nNot everything is shown. The arguments are longer than this question: decline unless you know the rest."
	}
	text += "\nArguments: " + arguments
	if !whole {
		text += fmt.Sprintf("\n(shortened: %d bytes in all, SHA-256 %s)", len(canonical), a.ArgumentsDigest)
	}
	if beside != nil {
		text += "\nBeside them: " + besideIt
	}
	return text
}

// laidOut returns the arguments for the page, as plain text: one member a line, and no long string pushes the following
// ones out of sight (attack M17).
func laidOut(canonical []byte) (text string, whole bool) {
	pieces, whole := webpage.JSON(canonical, shownArguments)
	var out strings.Builder
	for _, piece := range pieces {
		out.WriteString(piece.Text)
		if piece.Omitted > 0 {
			fmt.Fprintf(&out, " … %d bytes more, not shown", piece.Omitted)
		}
	}
	return out.String(), whole
}

// form returns the request that asks the client's user: a dialog with only yes and no.
func (h *held) form(a *storage.Approval) map[string]any {
	return map[string]any{
		"mode": "form", "message": h.question(a), "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
	}
}

// response returns a result of the gateway's own.
func response(id []byte, result map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result})
	if err != nil {
		return nil // not reached: its values can be encoded
	}
	return body
}
