package method

// serverMethods lists the requests that servers may send to clients, and the revision that introduced each.
// 2026-07-28 removed them all.
var serverMethods = map[string]string{
	"ping": "", "sampling/createMessage": "", "roots/list": "",
	"elicitation/create": "2025-06-18",
	"tasks/get":          "2025-11-25", "tasks/result": "2025-11-25", "tasks/list": "2025-11-25", "tasks/cancel": "2025-11-25",
}

// FromServer reports whether a server may send that request to a client in a revision before 2026-07-28; "" means an
// unknown revision.
func FromServer(method, version string) bool {
	since, known := serverMethods[method]
	return known && (version == "" || version >= since)
}
