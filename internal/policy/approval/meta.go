package approval

import "strings"

// boundMeta returns params._meta without the members that clients write anew for each request; nil when nothing is
// left. All other members reach the server, which may act on them.
func boundMeta(meta []byte) ([]byte, error) {
	if string(meta) == "null" {
		return nil, nil
	}
	bound, err := rewrite(meta, func(name string, _ []byte) ([]byte, verdict, error) {
		if ofRequest(name) {
			return nil, drop, nil
		}
		return nil, keep, nil
	}, nil)
	if err != nil || len(bound) == len("{}") {
		return nil, err
	}
	return bound, nil
}

// ofRequest reports whether a member of _meta belongs to the request and not to the call. Such members are the progress
// token, the trace context (W3C Trace Context and Baggage, whose names the protocol accepts without a prefix), and the
// protocol's own members.
func ofRequest(name string) bool {
	switch name {
	case "progressToken", "traceparent", "tracestate", "baggage":
		return true
	}
	prefix, _, prefixed := strings.Cut(name, "/")
	return prefixed && reserved(prefix)
}

// reserved reports whether the protocol reserves a prefix: one whose second label is modelcontextprotocol or mcp
// (2025-11-25 and 2026-07-28, basic, General fields). A malformed prefix is not reserved. Neither are the former
// revisions' modelcontextprotocol.io and mcp.dev, which another owner may have by now.
func reserved(prefix string) bool {
	labels := strings.Split(prefix, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	return len(labels) > 1 && (labels[1] == "modelcontextprotocol" || labels[1] == "mcp")
}

// isLabel reports whether a label begins with a letter, ends with a letter or digit, and has only hyphens, letters and
// digits between them.
func isLabel(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case '0' <= c && c <= '9' && i > 0:
		case c == '-' && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}
