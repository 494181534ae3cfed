package integration

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// opener is a go-sdk client that opens pages, with the notifications that it got.
type opener struct{ complete, changed chan string }

func newOpener() *opener { return &opener{make(chan string, 8), make(chan string, 8)} }

func (o *opener) options(pages bool) *mcp.ClientOptions {
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ElicitationCompleteHandler: func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
			o.complete <- r.Params.ElicitationID
		},
		ToolListChangedHandler: clientListChanged(o.changed),
	}
	if pages {
		options.Capabilities.Elicitation = &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		}
	}
	return options
}

// sent calls a tool, wants to be sent to the page, and returns the id of that.
func (c *mcpClient) sent(t *testing.T, page string) (id string) {
	t.Helper()
	_, err := c.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
	var refused *jsonrpc.Error
	var data struct{ Elicitations []mcp.ElicitParams }
	if !errors.As(err, &refused) || refused.Code != mcp.CodeURLElicitationRequired || json.Unmarshal(refused.Data, &data) != nil || len(data.Elicitations) != 1 || data.Elicitations[0].URL != page {
		t.Fatalf("it is answered %v, %+v", err, refused)
	}
	return data.Elicitations[0].ElicitationID
}

// told waits until all of the ids came, and returns the received ones.
func (o *opener) told(t *testing.T, ids ...string) (told []string) {
	t.Helper()
	for !slices.Contains(told, ids[0]) || !slices.Contains(told, ids[len(ids)-1]) {
		told = append(told, receive(t, o.complete, "notifications/elicitation/complete"))
	}
	receive(t, o.changed, "tools/list_changed")
	return told
}

// TestUnconnectedComplete checks that a client that opens pages is told when its user has connected, for each call that
// waits, and makes the calls again by itself (W31). One that opens none is told nothing of it, nor is one of another
// user.
func TestUnconnectedComplete(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newMCPServer(t, nil)
	s := g.createServer(upstream.url, bearerEntry())
	page := g.url + "/connect/" + s.Slug
	o, others, plain := newOpener(), newOpener(), newOpener()
	c := connectMCP(t, g.url+s.path, g.token(alice), "2025-11-25", o.options(true))
	other := connectMCP(t, g.url+s.path, g.token(bob), "2025-11-25", others.options(true))
	connectMCP(t, g.url+s.path, g.token(alice), "2025-11-25", plain.options(false))

	first, second, foreign := c.sent(t, page), c.sent(t, page), other.sent(t, page)
	if first == second || foreign == first || foreign == second {
		t.Errorf("two elicitations are one: %q, %q, %q", first, second, foreign)
	}
	g.connectBearer(g.token(alice), s, "token")
	if told := o.told(t, first, second); slices.Contains(told, foreign) {
		t.Errorf("told of %q", told)
	}
	if got := c.call(t, "echo", map[string]any{"text": "hello"}); got != "hello" {
		t.Errorf("the call after it: %s", got)
	}
	receive(t, plain.changed, "tools/list_changed")
	if len(plain.complete) > 0 || len(others.complete) > 0 {
		t.Errorf("told without having asked: %d, %d", len(plain.complete), len(others.complete))
	}
}

// TestUnconnectedCompleteOnNodes checks the case that the user connects at another node than the one at which the
// conversation is, and has asked at both.
func TestUnconnectedCompleteOnNodes(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{postgres: true})
	n := g.twin()
	s := g.createServer(newMCPServer(t, nil).url, bearerEntry())
	o := newOpener()
	c := connectMCP(t, n.url+s.path, g.token(alice), "2025-11-25", o.options(true))
	here := c.sent(t, g.url+"/connect/"+s.Slug)
	a := g.mcp(g.token(alice), s, c.http.sessionID(), toolCall("echo")).want(t, http.StatusOK)
	var refused struct {
		Error struct {
			Data struct{ Elicitations []mcp.ElicitParams }
		}
	}
	if a.decode(t, &refused); len(refused.Error.Data.Elicitations) != 1 {
		t.Fatalf("%s", a.body)
	}
	g.connectBearer(g.token(alice), s, "token")
	o.told(t, here, refused.Error.Data.Elicitations[0].ElicitationID)
	if got := c.call(t, "echo", map[string]any{"text": "hello"}); got != "hello" {
		t.Errorf("the call after it: %s", got)
	}
}
