package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxSlow  = 120 // seconds
	slowStep = 200 * time.Millisecond
)

type (
	echoInput struct {
		Message string `json:"message" jsonschema:"what to say back"`
	}
	addInput struct {
		A float64 `json:"a" jsonschema:"the first number"`
		B float64 `json:"b" jsonschema:"the second number"`
	}
	sum struct {
		Sum float64 `json:"sum"`
	}
	identity struct {
		Account string `json:"account" jsonschema:"the demo account whose token the call carried"`
		Client  string `json:"client" jsonschema:"the OAuth client that the token was issued to"`
	}
	listInput struct {
		Team string `json:"team,omitempty" jsonschema:"only issues of this team"`
	}
	issueList struct {
		Issues []Issue `json:"issues"`
	}
	createInput struct {
		Title    string `json:"title" jsonschema:"1 to 200 characters"`
		Team     string `json:"team,omitempty" jsonschema:"the team it is for"`
		Priority int    `json:"priority,omitempty" jsonschema:"1 is urgent, 4 is low, 0 is none"`
	}
	deleteInput struct {
		ID int `json:"id" jsonschema:"the issue's id"`
	}
	slowInput struct {
		Seconds float64 `json:"seconds" jsonschema:"how long to take, at most 120"`
	}
)

// newServer makes the MCP server that both lifecycles share. The grant of a call is read from each call's context.
func (d *Demo) newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "durward-demo", Title: "Demo third party", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "A small issue tracker for trying out the gateway. Issues belong to the connected demo account.",
	})
	no, yes := false, true
	readOnly := func(title string) *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says a message back.", Annotations: readOnly("Echo")},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
			return text(in.Message), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds two numbers.", Annotations: readOnly("Add")},
		func(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, sum, error) {
			total := in.A + in.B
			if math.IsInf(total, 0) {
				return nil, sum{}, errors.New("the sum is too large for a number of JSON")
			}
			return text(strconv.FormatFloat(total, 'f', -1, 64)), sum{Sum: total}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Says which demo account the call's token belongs to.", Annotations: readOnly("Who am I")},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, identity, error) {
			id := callerOf(r)
			return text(id.Account), id, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "list_issues", Description: "Lists the account's issues.", Annotations: readOnly("List issues")},
		func(_ context.Context, r *mcp.CallToolRequest, in listInput) (*mcp.CallToolResult, issueList, error) {
			list, err := d.issues.of(callerOf(r).Account, in.Team)
			return nil, issueList{Issues: list}, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "create_issue", Description: "Creates an issue.",
		Annotations: &mcp.ToolAnnotations{Title: "Create issue", DestructiveHint: &no, OpenWorldHint: &no}},
		func(_ context.Context, r *mcp.CallToolRequest, in createInput) (*mcp.CallToolResult, Issue, error) {
			if n := utf8.RuneCountInString(in.Title); n == 0 || n > 200 || utf8.RuneCountInString(in.Team) > 64 || in.Priority < 0 || in.Priority > 4 {
				return nil, Issue{}, errors.New("title must have 1 to 200 characters, team at most 64, and priority must be 0 to 4")
			}
			issue, err := d.issues.create(callerOf(r).Account, Issue{Title: in.Title, Team: in.Team, Priority: in.Priority})
			return nil, issue, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "delete_issue", Description: "Deletes an issue for good.",
		Annotations: &mcp.ToolAnnotations{Title: "Delete issue", DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no}},
		func(_ context.Context, r *mcp.CallToolRequest, in deleteInput) (*mcp.CallToolResult, Issue, error) {
			issue, err := d.issues.remove(callerOf(r).Account, in.ID)
			return nil, issue, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "slow", Description: "Takes its time, and reports progress when asked for it.", Annotations: readOnly("Slow")}, d.slow)
	return s
}

func (d *Demo) slow(ctx context.Context, r *mcp.CallToolRequest, in slowInput) (*mcp.CallToolResult, any, error) {
	if in.Seconds < 0 || in.Seconds > maxSlow {
		return nil, nil, fmt.Errorf("seconds must be between 0 and %d", maxSlow)
	}
	total := time.Duration(in.Seconds * float64(time.Second))
	step := min(slowStep, max(total/2, time.Millisecond)) // so that even a short wait reports its progress
	token := r.Params.GetProgressToken()
	for done := time.Duration(0); done < total; {
		wait := min(step, total-done)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, ctx.Err()
		case <-d.closing.Done():
			timer.Stop()
			return nil, nil, errors.New("the demo third party is shutting down")
		}
		done += wait
		if token != nil {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done.Seconds(), Total: total.Seconds()})
			if err != nil {
				return nil, nil, fmt.Errorf("reporting progress: %w", err)
			}
		}
	}
	return text(fmt.Sprintf("took %g seconds", in.Seconds)), nil, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
