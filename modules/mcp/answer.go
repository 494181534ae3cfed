package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/answer"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/modules/app/metrics"
)

// Servers label answers wrongly: some label an answer text/event-stream and send bare JSON, others send JSON as
// text/html, or nothing under any label. Clients may take such an answer for anything. So the gateway reads an answer
// by its real content, labels it anew, and passes on nothing that it did not read.

// These are the labels of answers. They are never written to.
var (
	labelJSON   = []string{"application/json"}
	labelEvents = []string{"text/event-stream"}
	labelText   = []string{"text/plain; charset=utf-8"}
)

// expect returns the messages that may come in the answer.
func (x *exchange) expect() *answer.Answers {
	a := &x.answers
	a.Dropped = x.dropped
	if x.r.Method == http.MethodGet {
		resumes := x.r.Header.Get("Last-Event-Id") != ""
		a.AnyID = func() bool { return resumes || x.box != nil && x.box.Opened() }
		a.Endpoint = x.box != nil
	}
	for i := range x.Message.Messages {
		if m := &x.Message.Messages[i]; m.Kind == jsonrpc.Request {
			a.Expect(m.ID)
		}
	}
	if a.Version = x.Version(); x.OpensSession() {
		a.Version = x.Single().Client().ProtocolVersion
	}
	if a.Asks = !x.Modern(); a.Asks {
		a.Mark = func(id []byte) []byte {
			return x.call.Core.Questions.Mark(id, cmp.Or(x.opened, x.Session.Upstream), x.call.Binding())
		}
	}
	a.Batches = a.Asks && (a.Version == "" || a.Version == inbound.LastBatchVersion)
	return a
}

// dropped counts a dropped message, and logs the first one.
func (x *exchange) dropped(why answer.Reason) {
	metrics.CountDropped(string(why))
	if x.droppedAny {
		return
	}
	x.droppedAny = true
	x.handler.Logger.Warn("dropping what does not belong to the request", zap.String("server", x.call.Server.Slug), zap.String("reason", string(why)))
}

// recognize finds the real kind of a successful answer to requests: JSON, whose body was read whole, or events.
func (x *exchange) recognize(response *forward.Response) error {
	if response.Status == http.StatusOK && isEvents(response) {
		response.Kind = forward.Events // also when its length is known to be none
		response.Body = sse.NewBare(response.Body, int(x.call.Core.Sizes.MCPEvent()))
		return nil
	}
	text, err := response.ReadAll(x.call.Core.Sizes.MCPEvent())
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	switch begin := bytes.TrimLeft(text, " \t\r\n"); {
	case sse.IsJSON(begin):
		response.Kind = forward.JSON
		response.SetBody(text)
	case sse.IsEvents(begin):
		response.Kind, response.ContentLength = forward.Events, -1
		response.Body = bytes.NewReader(text)
	default:
		return &forward.Error{Class: forward.ErrUpstream, Cause: fmt.Errorf("an answer of %d bytes labelled %.64q is neither JSON nor an event stream", len(text), response.Header("Content-Type"))}
	}
	return nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// recognizeRefusal reads the body of an error status: JSON, or plain text. A page, or a stream, comes from a proxy in
// front of the server.
func (x *exchange) recognizeRefusal(response *forward.Response, text []byte) ([]byte, forward.Kind, error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	switch {
	case len(text) == 0 && response.Status < http.StatusInternalServerError:
		return text, forward.Empty, nil
	case sse.IsJSON(bytes.TrimLeft(text, " \t\r\n")) && json.Valid(text):
		if !x.expect().Refusal(text) {
			return nil, 0, &forward.Error{Class: forward.ErrUpstream, Cause: errForeign}
		}
		return text, forward.JSON, nil
	case isText(response) && response.Status < http.StatusInternalServerError:
		return text, forward.Other, nil
	}
	return nil, 0, &forward.Error{Class: forward.ErrUpstream, Cause: fmt.Errorf("status %d with an answer labelled %.64q is not MCP", response.Status, response.Header("Content-Type"))}
}

// label sets the real kind of an answer in place of its server's label.
func (x *exchange) label(kind forward.Kind) {
	label := labelText
	switch kind {
	case forward.JSON:
		label = labelJSON
	case forward.Events:
		label = labelEvents
	}
	x.w.Header()["Content-Type"] = label
}

// answerWait is the time for which the headers of an answer in events wait for the first event: an answer that fails
// before it is a 502. Its client waits for an event anyway.
const answerWait = time.Second

var errForeign = errors.New("the answer is not one to the request")

// hold lets only those parts of the answer pass that belong to its request and that policies let its caller see.
func (x *exchange) hold(response *forward.Response) error {
	answers, filter, limit := x.expect(), x.call.Decision.Filter, x.call.Core.Sizes.MCPEvent()
	if response.Kind == forward.Events {
		events := sse.NewEventRewriter(response.Body, int(limit), func(e *sse.Event) ([]byte, bool) {
			data, changed := answers.Event(e)
			x.noteFailure(data)
			if filter == nil || len(data) == 0 {
				return data, changed
			}
			filtered, edited := filter.Event(data)
			return filtered, changed || edited
		})
		response.Body = events
		if x.r.Method == http.MethodPost {
			x.inSession = response.SessionID() != "" || x.session().Forwarded() != ""
			response.Body, response.Hold = &answered{Rewriter: events, exchange: x}, answerWait
		}
		return nil
	}
	text := answers.Message(response.Whole())
	if text == nil {
		return &forward.Error{Class: forward.ErrUpstream, Cause: errForeign}
	}
	x.noteFailure(text)
	if text = x.completed(text); text == nil {
		return &forward.Error{Class: forward.ErrUpstream, Cause: errUnanswered}
	}
	text, err := x.filtered(text)
	if err != nil {
		return err
	}
	response.SetBody(text)
	return nil
}

// completed adds an answer for each request that a complete answer leaves without one: clients would wait for it until
// their own timeout. Servers send a notification in its place, a part of a batch, or an error without an id. It returns
// nil when no part answers.
func (x *exchange) completed(text []byte) []byte {
	if x.answers.Done() {
		return text
	}
	if m := x.Single(); m != nil {
		if e, ok := jsonrpc.ReadEnvelope(text); !ok || !e.Failure {
			return nil
		}
		named, _ := jsonrpc.Replace(text, func([]byte) []byte { return m.ID }, "id")
		return named
	}
	if !x.answers.Any() {
		return nil
	}
	all := bytes.Trim(text, " \t\r\n")
	if all[0] == '[' {
		all = all[1 : len(all)-1]
	}
	all = append([]byte("["), all...)
	for id := range x.answers.Open {
		all = append(append(all, ','), gateway.UpstreamFailure(id)...)
	}
	return append(all, ']')
}

// resumes reports whether the client can ask for the rest of a stream that has ended: its events have ids, and a
// session tells to whom they belong.
func (x *exchange) resumes() bool { return x.mayGoOn() && x.answers.Resumable() }

// mayGoOn reports whether the answer may still come although its stream has ended: servers with sessions may close a
// stream at any time and wait for a new request (SEP-1699), and not all give an event id before. When messages came and
// none had an id, there is no point from which to resume.
func (x *exchange) mayGoOn() bool {
	return x.inSession && !x.Modern() && (x.answers.Resumable() || !x.answers.Spoken())
}

var errUnanswered = errors.New("the answer has ended without one to each request")

// answered is a stream of events that does not end before the answer has come. Clients of a stream that ended wait for
// the answer until their own timeout.
type answered struct {
	*sse.Rewriter
	exchange *exchange
}

// Read implements io.Reader.
func (a *answered) Read(p []byte) (int, error) {
	n, err := a.Rewriter.Read(p)
	return n, a.end(err)
}

// Lend does the same as the rewriter's Lend, except for the end.
func (a *answered) Lend(most int) ([]byte, error) {
	lent, err := a.Rewriter.Lend(most)
	return lent, a.end(err)
}

func (a *answered) end(err error) error {
	if err == io.EOF && !a.exchange.answers.Done() && !a.exchange.mayGoOn() { //nolint:errorlint // an error that wraps io.EOF is not a stream's end
		return errUnanswered
	}
	return err
}

// giveUp ends a stream that has broken off with an error for each request that has no answer, and reports whether the
// client then knows the result of all requests.
func (x *exchange) giveUp(response *forward.Response) bool {
	if x.r.Method != http.MethodPost || x.resumes() || x.answers.Done() {
		return false
	}
	text := []byte("\n\n")
	for id := range x.answers.Open {
		text = fmt.Appendf(text, "event: message\ndata: %s\n\n", gateway.UpstreamFailure(id))
	}
	_, err := response.Client(x.w).WriteLast(text)
	return err == nil
}
