package method

import (
	"slices"
	"testing"
)

// revisions lists the methods that the schema of each revision defines: requests of clients and servers (`method: "..."`
// of schema.ts), and, for the last one, those of the extension for tasks (SEP-2663).
var revisions = map[string]map[string]Class{
	"2024-11-05": {
		"initialize": Session, "ping": Session, "logging/setLevel": Session,
		"tools/list": List, "tools/call": Call, "prompts/list": List, "prompts/get": Read,
		"resources/list": List, "resources/templates/list": List, "resources/read": Read,
		"resources/subscribe": Subscription, "resources/unsubscribe": Subscription, "completion/complete": Completion,
		"sampling/createMessage": ServerToClient, "roots/list": ServerToClient,
		"notifications/initialized": Notification, "notifications/cancelled": Notification, "notifications/progress": Notification,
		"notifications/message": Notification, "notifications/roots/list_changed": Notification,
		"notifications/tools/list_changed": Notification, "notifications/prompts/list_changed": Notification,
		"notifications/resources/list_changed": Notification, "notifications/resources/updated": Notification,
	},
	"2025-03-26": {}, // the same methods
	"2025-06-18": {"elicitation/create": ServerToClient},
	"2025-11-25": {
		"tasks/get": Task, "tasks/result": Task, "tasks/list": Task, "tasks/cancel": Task,
		"notifications/tasks/status": Notification, "notifications/elicitation/complete": Notification,
	},
	"2026-07-28": {
		"server/discover": Session, "subscriptions/listen": Subscription, "notifications/subscriptions/acknowledged": Notification,
		"tasks/get": Task, "tasks/update": Task, "tasks/cancel": Task,
	},
}

const newest = "2026-07-28"

// takenAway are the methods that need an action and that the newest revision has no more.
var takenAway = []string{"resources/subscribe", "resources/unsubscribe", "tasks/result", "tasks/list"}

// TestTable checks M09: every method of every revision has its class, and everything else has none.
func TestTable(t *testing.T) {
	for revision, methods := range revisions {
		for method, want := range methods {
			if got := Of(method, revision == newest); got != want {
				t.Errorf("M09 %s of %s: class %d, want %d", method, revision, got, want)
			}
			if got := Of(method, true); got != want && !slices.Contains(takenAway, method) {
				t.Errorf("M09 %s: class %d in %s, want %d", method, got, newest, want)
			}
		}
	}
	for _, method := range []string{
		"", "rpc.discover", "rpc.", "tools", "tools/", "tools/call ", " tools/call", "Tools/call", "TOOLS/CALL", "tools/call\x00", "tools/call/x",
		"tools//call", "notifications", "Notifications/initialized", "ui/open", "io.modelcontextprotocol/x", "com.example/run", "tasks/create", "tasks/send",
		"resources/write", "completion", "sampling/", "elicitation/x", "notification/initialized",
	} {
		if Of(method, false) != Unknown || Of(method, true) != Unknown {
			t.Errorf("M09 %q has a class", method)
		}
	}
	for _, method := range takenAway {
		if Of(method, false) == Unknown || Of(method, true) != Unknown {
			t.Errorf("M09 %s: class %d, in %s %d", method, Of(method, false), newest, Of(method, true))
		}
	}
}
