package forward

// Rules are allow-lists of headers for what is not MCP. Content-Length, Accept-Encoding and what belongs to a connection are
// the transport's own and never on them. The map of each is from canonical names to whether the header may be given more
// than once: two of another are two opinions for two parsers.
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
