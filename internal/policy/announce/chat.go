package announce

import (
	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/storage"
)

// shownText is the greatest length of a text of others in a message, in bytes.
const shownText = 300

func shown(text string) string {
	out, whole := visible.Beginning(text, shownText)
	if !whole {
		out += " …"
	}
	return out
}

// line is a name and its value in a message to people.
type line struct{ name, value string }

// titleOf returns the first line of a message. It holds no text of others.
func titleOf(event string, t *Told) string {
	switch {
	case event == storage.EventHeld:
		return "A tool call waits for approval"
	case event == storage.EventExpired:
		return "Nobody decided on a tool call in time"
	case t.Status == string(storage.ApprovalApproved):
		return "A tool call was approved"
	}
	return "A tool call was denied"
}

// linesOf returns the facts about a call for people. All characters in them are visible ones.
func linesOf(t *Told) []line {
	agent := shown(t.Agent)
	if agent == "" {
		agent = "a client that is not registered (" + shown(t.Client) + ")"
	}
	lines := []line{{"Tool", shown(t.Tool)}, {"Server", shown(t.Server)}, {"Asked by", shown(t.User)}, {"Agent", agent}}
	if t.DecidedBy != "" {
		return append(lines, line{"Decided by", shown(t.DecidedBy)})
	}
	if len(t.Approvers) > 0 {
		return append(lines, line{"Waits for", shown(approval.People(t.Approvers))})
	}
	return append(lines, line{"Waits for", shown(t.User)})
}

type object = map[string]any

// slackMessage returns a message for an incoming webhook of Slack. Texts of others stand in plain_text alone, in which Slack
// reads neither links nor mentions. The text for notifications, which Slack does read, is the gateway's own.
func slackMessage(event string, t *Told) object {
	plain := func(text string) object { return object{"type": "plain_text", "text": text, "emoji": false} }
	title := titleOf(event, t)
	fields := []object{}
	for _, l := range linesOf(t) {
		fields = append(fields, plain(l.name+": "+l.value))
	}
	return object{
		"text": title, "unfurl_links": false, "unfurl_media": false,
		"blocks": []object{
			{"type": "header", "text": plain(title)},
			{"type": "section", "fields": fields},
			{"type": "section", "text": object{"type": "mrkdwn", "text": "<" + t.URL + "|Open the page>"}},
		},
	}
}

// teamsMessage returns a message for an incoming webhook of Microsoft Teams. Texts of others stand in runs of text alone,
// which are no Markdown. A mention would need an entity, and there is none.
func teamsMessage(event string, t *Told) object {
	card := []object{{"type": "TextBlock", "text": titleOf(event, t), "weight": "bolder", "size": "medium", "wrap": true}}
	for _, l := range linesOf(t) {
		card = append(card, object{"type": "RichTextBlock", "inlines": []object{
			{"type": "TextRun", "text": l.name + ": ", "weight": "bolder"}, {"type": "TextRun", "text": l.value},
		}})
	}
	return object{"type": "message", "attachments": []object{{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content": object{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": card,
			"actions": []object{{"type": "Action.OpenUrl", "title": "Open the page", "url": t.URL}},
		},
	}}}
}
