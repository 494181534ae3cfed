package tracing

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/durward-gateway/durward/internal/audit/record"
)

// Client is the span of a request to an upstream, and the place in the trace from which the request goes out. The zero
// value is that of a request that is not traced. It ends once.
type Client struct {
	whole trace.Span // of the client's request; nil: it is not traced
	span  trace.Span // nil: it is not recorded
}

// Recorded reports whether the span is recorded.
func (c Client) Recorded() bool { return c.span != nil }

// Message describes a message to an MCP server.
type Message struct {
	Method  string
	Name    string // of the tool or prompt; "": the message has none
	ID      []byte // of a request, as it was written
	Version string // the revision of the protocol
	Session string // the upstream's own id of the session; "" for none
	Server  *url.URL
}

// Message begins a request to an MCP server.
func (t *Trace) Message(m Message) Client {
	if t == nil {
		return Client{}
	}
	if t.tracer == nil {
		return Client{whole: t.whole}
	}
	attributes := append(make([]attribute.KeyValue, 0, 10), attribute.String(attrMCPMethod, record.Short(m.Method)))
	name := record.Short(m.Method)
	if m.Name != "" {
		name += " " + record.Short(m.Name)
		switch m.Method {
		case "tools/call":
			attributes = append(attributes, attribute.String(attrToolName, record.Short(m.Name)), attribute.String(attrOperation, executeTool))
		case "prompts/get":
			attributes = append(attributes, attribute.String(attrPromptName, record.Short(m.Name)))
		}
	}
	if m.ID != nil {
		attributes = append(attributes, attribute.String(attrRequestID, record.Short(plainID(m.ID))))
	}
	if m.Version != "" {
		attributes = append(attributes, attribute.String(attrMCPVersion, record.Short(m.Version)))
	}
	if m.Session != "" {
		attributes = append(attributes, attribute.String(attrMCPSession, digest(m.Session)))
	}
	return t.client(name, append(attributes, address(m.Server)...))
}

// Request begins a request to an upstream that is no call: for a stream, or the end of a session.
func (t *Trace) Request(httpMethod string, server *url.URL) Client {
	switch {
	case t == nil:
		return Client{}
	case t.tracer == nil:
		return Client{whole: t.whole}
	}
	return t.client(httpMethod, append(address(server), attribute.String(attrHTTPMethod, httpMethod)))
}

// Question describes a request to a provider of models.
type Question struct {
	Operation string // chat, embeddings, ...
	Provider  string
	Model     string // by the provider's name for it
	Server    *url.URL
}

// Question begins a request to a provider of models.
func (t *Trace) Question(q Question) Client {
	switch {
	case t == nil:
		return Client{}
	case t.tracer == nil:
		return Client{whole: t.whole}
	}
	return t.client(q.Operation+" "+record.Short(q.Model), append(address(q.Server),
		attribute.String(attrOperation, q.Operation), attribute.String(attrProvider, q.Provider), attribute.String(attrRequestModel, record.Short(q.Model))))
}

func (t *Trace) client(name string, attributes []attribute.KeyValue) Client {
	_, span := t.tracer.Start(t.inside, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return Client{whole: t.whole, span: span}
}

// digest returns a name for a session that tells sessions apart. The id itself opens the session at many servers.
func digest(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:8])
}

// plainID returns the id of a request without the quotes of a string.
func plainID(id []byte) string {
	if len(id) > 1 && id[0] == '"' {
		return string(id[1 : len(id)-1])
	}
	return string(id)
}

// address returns the host and port of an upstream; a URL may hold a secret elsewhere.
func address(u *url.URL) []attribute.KeyValue {
	if u == nil {
		return nil
	}
	found := append(make([]attribute.KeyValue, 0, 6), attribute.String(attrServerAddress, u.Hostname()))
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		if port = 443; u.Scheme == "http" {
			port = 80
		}
	}
	return append(found, attribute.Int(attrServerPort, port))
}

// Usage holds the words of a model's answer about the model and the work.
type Usage struct {
	Model         string // the model that answered; "": it was not named
	Input, Output int64
	Estimated     bool // the provider did not count
}

// Used notes the usage of a model.
func (c Client) Used(u Usage) {
	if c.span == nil {
		return
	}
	if u.Model != "" {
		c.span.SetAttributes(attribute.String(attrResponseModel, record.Short(u.Model)))
	}
	if u.Input > 0 || u.Output > 0 {
		c.span.SetAttributes(attribute.Int64(attrInputTokens, u.Input), attribute.Int64(attrOutputTokens, u.Output))
		if u.Estimated {
			c.span.SetAttributes(attribute.Bool(attrTokensEstimated, true))
		}
	}
}

// Failed notes the code of the JSON-RPC error that an MCP server answered with, or [ToolError].
func (c Client) Failed(by string) {
	if c.span == nil || by == "" {
		return
	}
	c.span.SetAttributes(attribute.String(attrErrorType, by))
	if by != ToolError {
		c.span.SetAttributes(attribute.String(attrRPCStatus, by))
	}
	c.span.SetStatus(codes.Error, "")
}

// End ends the span. outcome is the gateway's word for the result, and status that of the upstream's answer, 0 when
// there was none.
func (c Client) End(outcome string, status int) {
	if c.span == nil {
		return
	}
	c.span.SetAttributes(attribute.String(attrOutcome, outcome))
	if status > 0 {
		c.span.SetAttributes(attribute.Int(attrHTTPStatus, status))
	}
	if outcome != "ok" {
		c.span.SetAttributes(attribute.String(attrErrorType, outcome))
		c.span.SetStatus(codes.Error, "")
	} else if status >= 400 {
		c.span.SetAttributes(attribute.String(attrErrorType, strconv.Itoa(status)))
		c.span.SetStatus(codes.Error, "")
	}
	c.span.End()
}
