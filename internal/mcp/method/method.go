// Package method knows every method of MCP, in all its revisions from 2024-11-05 to 2026-07-28, and its class.
// Policies judge a message by this one table. A method that is not in it is refused, however harmless it looks: an
// unknown method could run anything (attack M09).
package method

import "strings"

// Class describes the effect of a method, as far as policies need it.
type Class uint8

// Classes of methods.
const (
	// Unknown methods are refused: those that no revision defines, extensions' own methods, JSON-RPC's reserved
	// `rpc.`.
	Unknown Class = iota
	// Session methods open, tune or keep up a conversation. They need no action.
	Session
	// List methods list the objects of a server. They are never refused; their answers are filtered.
	List
	// Call runs a tool.
	Call
	// Read methods return a resource or a prompt.
	Read
	// Completion suggests arguments for a Read, and is judged like one.
	Completion
	// Subscription methods subscribe to changes of resources, each judged like reading it.
	Subscription
	// Task methods are about a call that continues by itself, and belong to the maker of that call.
	Task
	// Notification methods tell something and get no answer. They need no action.
	Notification
	// ServerToClient methods are requests from servers to clients. A client that sends one is refused as for an
	// unknown method.
	ServerToClient
)

// Of returns the class of a method, compared exactly. Methods that both sides may send (ping, tasks/*) have the class
// of a request from a client. In the revision 2026-07-28 and later (modern), methods that it removed and that would
// have to be judged are Unknown: servers answer them so.
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
		return Notification // whatever its name: nothing answers it
	}
	return Unknown
}
