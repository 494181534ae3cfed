package forward

// Rules holds allow-lists of headers for traffic that is not MCP. Content-Length, Accept-Encoding and connection
// headers belong to the transport and are never on them. Each map is from canonical names to whether the header may
// occur more than once. For other headers, two values could be read differently by two parsers.
type Rules struct {
	Request  map[string]bool // towards the upstream
	Response map[string]bool // towards the client
}

func (r *Rules) request(name string) occurrence {
	if r == nil {
		return requestRule(name)
	}
	return listed(r.Request, name)
}

func (r *Rules) response(name string) occurrence {
	if r == nil {
		return responseRule(name)
	}
	return listed(r.Response, name)
}

func listed(names map[string]bool, name string) occurrence {
	several, ok := names[name]
	switch {
	case !ok:
		return never
	case several:
		return many
	}
	return once
}
