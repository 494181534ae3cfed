// Package mcpmethod knows every method of MCP, of all its revisions from 2024-11-05 to 2026-07-28, and what kind of thing
// each does: it is by this one table that policies judge a message. What is not in it is refused, however harmless it
// looks: a method that nobody knows could run anything (attack M09).
package mcpmethod

import "strings"

// Class is what a method does, as far as policies care.
type Class uint8

// Classes of methods.
const (
	// Unknown methods are refused: what no revision defines, extensions' own methods, JSON-RPC's reserved `rpc.`.
	Unknown Class = iota
	// Session methods open, tune or keep up a conversation. They need no action.
	Session
	// List methods name what there is. They are never refused; their answers are filtered.
	List
	// Call runs a tool.
	Call
	// Read methods give out a resource or a prompt.
	Read
	// Completion helps to fill in what a Read needs, and is judged like that.
	Completion
	// Subscription methods ask for news of resources, each judged like its reading.
	Subscription
	// Task methods speak of a call that goes on by itself, and belong to whoever made that call.
	Task
	// Notification methods tell something and get no answer. They need no action.
	Notification
	// ServerToClient methods are what servers ask of clients. A client that sends one is refused like one that sends
	// nonsense.
	ServerToClient
)

// Of returns the class of a method, compared exactly. Methods that both sides may send (ping, tasks/*) have the class of what a
// client sends. In the revision 2026-07-28 and later (modern), methods that it took away and that would have to be judged
// are Unknown: servers answer them so.
func Of(method string, modern bool) Class {
	switch method {
	case "resources/subscribe", "resources/unsubscribe":
		if modern {
			return Unknown
		}
		return Subscription
	case "tasks/result", "tasks/list":
		if modern {
			return Unknown
		}
		return Task
	case "initialize", "ping", "logging/setLevel", "server/discover":
		return Session
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		return List
	case "tools/call":
		return Call
	case "resources/read", "prompts/get":
		return Read
	case "completion/complete":
		return Completion
	case "subscriptions/listen":
		return Subscription
	case "tasks/get", "tasks/cancel", "tasks/update":
		return Task
	case "sampling/createMessage", "elicitation/create", "roots/list":
		return ServerToClient
	}
	if strings.HasPrefix(method, "notifications/") {
		return Notification // of any name: nothing answers them
	}
	return Unknown
}
