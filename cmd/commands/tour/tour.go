// Package tour runs the main job against a gateway in development mode, step by step, with only the means of users
// and agents: a login at the gateway over PKCE, the platform API, an MCP client, an event stream, an API key.
//
// The report of a step never holds a secret: of tokens, codes and states it names the kind, not the value.
package tour

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
)

// Users of the development identity provider as whom the tour acts.
const (
	alice = "alice@example.test"
	bob   = "bob@example.test" // of the group sales
	admin = "admin@example.test"
)

const (
	serverSlug = "demo"
	// stepTimeout bounds each step.
	stepTimeout = 30 * time.Second
)

// Options holds the parameters of the tour.
type Options struct {
	Gateway string       // origin, such as http://127.0.0.1:8080
	Client  *http.Client // for the gateway and its parts; it follows no redirects
	Now     func() time.Time
	Report  func(Step) // is called for each step once it is done
}

// Step describes a step and its result.
type Step struct {
	Name   string   `json:"step"`
	OK     bool     `json:"ok"`
	MS     float64  `json:"ms"`     // how long it took
	Detail []string `json:"detail"` // the data exchanged, in sentences
	Error  string   `json:"error,omitempty"`
	Hint   string   `json:"hint,omitempty"` // how to mend the error
	Title  string   `json:"title"`
}

// ErrFailed says that a step failed, and that Report has got the reason.
var ErrFailed = errors.New("the tour failed")

// errSkip leaves a step out of the report.
var errSkip = errors.New("nothing to do in this step")

// failure is an error with advice.
type failure struct {
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func hint(text string, format string, arguments ...any) error {
	return &failure{err: fmt.Errorf(format, arguments...), hint: text}
}

// person holds the facts about a user.
type person struct {
	email     string
	token     seal.Secret
	connected bool   // the server was connected before the tour, and stays so
	account   string // at the demo third party
}

// accounts maps users to their accounts at the demo third party.
var accounts = map[string]string{alice: "demo-alice", bob: "demo-bob"}

// walk holds the results of steps for later ones.
type walk struct {
	Options
	*person        // the user of the present step
	server  string // slug of the one to connect
	people  map[string]*person
	key     apiKey
}

// as makes the following steps act as a user.
func (w *walk) as(email string) {
	if w.people[email] == nil {
		w.people[email] = &person{email: email, account: accounts[email]}
	}
	w.person = w.people[email]
}

type step struct {
	name, title, as string
	run             func(context.Context, *walk) ([]string, error)
}

var steps = []step{
	{"login", "Log in as " + alice + " with the company's account, and agree to the client (OAuth with PKCE)", alice, logIn},
	{"servers", "List the servers of the organization", alice, listServers},
	{"connect", "Connect a third-party account to " + serverSlug + " (OAuth, as a browser would)", alice, connectUnlessKept},
	{"tools", "List the tools with an MCP client", alice, listTools},
	{"call", "Call tools with an MCP client: the policy allows them", alice, callTools},
	{"approve", "Call a tool that the policy holds until its user agrees", alice, callHeld},
	{"deny", "Call a tool as " + bob + ", with an argument that the policy denies to the group sales", bob, callDenied},
	{"audit", "Read the audit log as " + admin, admin, readAudit},
	{"events", "Read an event of the third party", alice, readEvent},
	{"disconnect", "Disconnect the account", alice, disconnectUnlessKept},
	{"refused", "Call again: the gateway refuses", alice, callAgainUnlessKept},
	{"key", "Make an API key for models as " + admin, admin, makeKey},
	{"completion", "Stream a completion with the key", admin, streamCompletion},
	{"route", "Ask the smart model something easy and something hard", admin, routeTwice},
	{"limit", "Limit the key, and reach the limit", admin, reachLimit},
	{"usage", "Read what the key used, and what that cost", admin, readUsage},
	{"revoke", "Revoke the key: the gateway refuses it", admin, revokeKey},
}

// Run runs the steps until one fails. Errors: ErrFailed, or that of ctx.
func Run(ctx context.Context, o Options) error {
	w := &walk{Options: o, people: make(map[string]*person), server: serverSlug}
	for _, s := range steps {
		w.as(s.as)
		done, err := w.do(ctx, s)
		if errors.Is(err, errSkip) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Report(done)
		if err != nil {
			return ErrFailed
		}
	}
	return nil
}

func (w *walk) do(ctx context.Context, s step) (Step, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	started := w.Now()
	detail, err := s.run(ctx, w)
	done := Step{Name: s.name, Title: s.title, OK: err == nil, MS: float64(w.Now().Sub(started).Microseconds()) / 1000, Detail: detail}
	if done.Detail == nil {
		done.Detail = []string{}
	}
	if err != nil {
		done.Error, done.Hint = err.Error(), "See what `durward dev` logs; `durward dev --reset` starts afresh."
		if errors.Is(err, context.DeadlineExceeded) {
			done.Error = fmt.Sprintf("no end after %v: %v", stepTimeout, err)
		}
		var known *failure
		if errors.As(err, &known) {
			done.Hint = known.hint
		}
	}
	return done, err
}
