package tour

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools that the example policy of development mode names.
const (
	createTool = "create_issue"
	deleteTool = "delete_issue"
)

type issue struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
}

// callHeld creates an issue, an urgent one, which only sales is denied, and deletes it. The gateway holds the
// deletion and asks the user, through the client; nothing reaches the third party before the user agrees.
func callHeld(ctx context.Context, w *walk) ([]string, error) {
	var asked []string
	session, carrier, err := w.open(ctx, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, strings.Join(strings.Fields(request.Params.Message), " "))
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	if err != nil {
		return nil, explain(err, carrier)
	}
	defer session.Close()
	var made, gone issue
	if err := call(ctx, session, createTool, map[string]any{"title": "Made by the tour", "priority": 1}, &made); err != nil {
		return nil, explain(err, carrier)
	}
	detail := []string{fmt.Sprintf("tools/call %s {title, priority: 1} -> issue %d", createTool, made.ID)}
	if len(asked) > 0 {
		return detail, fmt.Errorf("%s needs no approval, but the gateway asked: %s", createTool, asked[0])
	}
	if err := call(ctx, session, deleteTool, map[string]any{"id": made.ID}, &gone); err != nil {
		return detail, explain(err, carrier)
	}
	if len(asked) != 1 {
		return detail, fmt.Errorf("%s ran, and the user was asked %d times", deleteTool, len(asked))
	}
	return append(detail,
		fmt.Sprintf("tools/call %s {id: %d}: the gateway holds the call and asks: %s", deleteTool, made.ID, asked[0]),
		fmt.Sprintf("the user agrees -> issue %d is gone", gone.ID)), nil
}

// callDenied passes when the policy refuses an urgent issue to a user in sales, and allows another one.
func callDenied(ctx context.Context, w *walk) (detail []string, err error) {
	for _, prepare := range []func(context.Context, *walk) ([]string, error){logIn, listServers, connectUnlessKept} {
		if _, err := prepare(ctx, w); err != nil {
			return detail, err
		}
	}
	detail = append(detail, "bob logged in, connected as "+w.account)
	if w.connected {
		detail[len(detail)-1] = "bob logged in; " + textKept
	}
	defer func() {
		if _, left := disconnectUnlessKept(ctx, w); err == nil && !errors.Is(left, errSkip) {
			err = left
		}
	}()
	session, carrier, err := w.open(ctx, nil)
	if err != nil {
		return detail, explain(err, carrier)
	}
	defer session.Close()
	refused, err := session.CallTool(ctx, &mcp.CallToolParams{Name: createTool, Arguments: map[string]any{"title": "Now!", "priority": 1}})
	if err != nil {
		return detail, explain(err, carrier)
	}
	if !refused.IsError {
		return detail, errors.New("the gateway let an urgent issue through")
	}
	detail = append(detail, fmt.Sprintf("tools/call %s {title, priority: 1} -> %s; the third party saw nothing of it", createTool, text(refused)))
	var made issue
	if err := call(ctx, session, createTool, map[string]any{"title": "Some time", "priority": 4}, &made); err != nil {
		return detail, explain(err, carrier)
	}
	return append(detail, fmt.Sprintf("tools/call %s {title, priority: 4} -> issue %d", createTool, made.ID)), nil
}
