package routes

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// OrganizationRule names the organization whose objects a route works on.
type OrganizationRule string

// These are the rules of organizations.
const (
	NoOrganization  OrganizationRule = "none"
	OwnOrganization OrganizationRule = "own" // only the caller's organization; objects of others are answered like unknown ones
)

// AuditClass is the kind of event that a request on a route is.
type AuditClass string

// These are the classes of events.
const (
	AuditNone       AuditClass = "none"
	AuditRead       AuditClass = "read"
	AuditConnection AuditClass = "connection" // of a credential of the caller's own: a connection, a key
	AuditAdminWrite AuditClass = "admin_write"
	AuditApproval   AuditClass = "approval" // a decision on a held call
)

// Route is one operation. Serve returns the body of a 200, nil for a 204, [Created], [Streamed], or the error with
// which the request is refused. Q is the family's own request.
type Route[Q any] struct {
	Method       string
	Path         string // segments in braces are parameters
	Role         Role
	Organization OrganizationRule
	Audit        AuditClass
	Serve        func(Q) (any, error)

	// The rest is for those who read about it: see Gives.
	name, summary string
	status        int
	media, other  string
	answer        reflect.Type
}

// At declares a route. [Route.Gives] declares its answer.
func At[Q any](method, path string, role Role, organization OrganizationRule, audit AuditClass, serve func(Q) (any, error)) Route[Q] {
	return Route[Q]{Method: method, Path: path, Role: role, Organization: organization, Audit: audit, Serve: serve}
}

// check reports the parts of a route that are not declared (attack R07).
func (r Route[Q]) check() error {
	switch {
	case r.Method == "" || !strings.HasPrefix(r.Path, "/") || r.Serve == nil:
		return fmt.Errorf("route %s %s: method, path and function are required", r.Method, r.Path)
	case !slices.Contains(allRoles, r.Role):
		return fmt.Errorf("route %s %s: unknown role %q", r.Method, r.Path, r.Role)
	case !slices.Contains([]OrganizationRule{NoOrganization, OwnOrganization}, r.Organization):
		return fmt.Errorf("route %s %s: unknown organization rule %q", r.Method, r.Path, r.Organization)
	case !slices.Contains([]AuditClass{AuditNone, AuditRead, AuditConnection, AuditAdminWrite, AuditApproval}, r.Audit):
		return fmt.Errorf("route %s %s: unknown audit class %q", r.Method, r.Path, r.Audit)
	case (r.Role == Public) != (r.Organization == NoOrganization):
		return fmt.Errorf("route %s %s: a route without an organization is public, and only that", r.Method, r.Path)
	case r.Audit == AuditRead && slices.Contains([]string{http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method):
		return fmt.Errorf("route %s %s: it writes, and its audit class says that it reads", r.Method, r.Path)
	case r.Role == Auditor && r.Audit != AuditRead:
		return fmt.Errorf("route %s %s: auditors write nothing", r.Method, r.Path)
	case r.Role == Admin && r.Audit == AuditRead:
		return fmt.Errorf("route %s %s: auditors read everything that administrators read", r.Method, r.Path)
	case r.summary == "" || r.status == 0:
		return fmt.Errorf("route %s %s: neither its meaning nor its answer is declared", r.Method, r.Path)
	}
	return nil
}

// Address holds all operations on one path.
type Address[Q any] struct {
	Segments []string
	Methods  map[string]*Route[Q]
	Allow    string // value of Allow: its methods
}

// Table holds addresses in the order in which they are tried: literal segments come before parameters.
type Table[Q any] []*Address[Q]

// MustTable makes the table of routes. It panics on a route that is not declared in full, or twice.
func MustTable[Q any](routes ...Route[Q]) Table[Q] {
	byPath := make(map[string]*Address[Q])
	var all Table[Q]
	for _, r := range routes {
		if err := r.check(); err != nil {
			panic(err)
		}
		a := byPath[r.Path]
		if a == nil {
			a = &Address[Q]{Segments: strings.Split(r.Path, "/"), Methods: make(map[string]*Route[Q])}
			byPath[r.Path] = a
			all = append(all, a)
		}
		if a.Methods[r.Method] != nil {
			panic(fmt.Errorf("route %s %s is declared twice", r.Method, r.Path))
		}
		a.Methods[r.Method] = &r
		a.Allow = strings.TrimPrefix(a.Allow+", "+r.Method, ", ")
	}
	slices.SortStableFunc(all, func(a, b *Address[Q]) int { return slices.CompareFunc(a.Segments, b.Segments, literalFirst) })
	return all
}

func literalFirst(a, b string) int {
	switch x, y := isParameter(a), isParameter(b); {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }

// Find returns the address of a path and its parameters, nil when there is none. Paths are compared byte by byte and as a
// whole: letters in another case, a slash at the end or an empty segment make another path (attacks P01, P02).
func (all Table[Q]) Find(path string) (*Address[Q], map[string]string) {
	segments := strings.Split(path, "/")
	for _, a := range all {
		if params, ok := a.match(segments); ok {
			return a, params
		}
	}
	return nil, nil
}

func (a *Address[Q]) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(a.Segments) {
		return nil, false
	}
	var params map[string]string
	for i, want := range a.Segments {
		switch got := segments[i]; {
		case isParameter(want) && got != "":
			if params == nil {
				params = make(map[string]string, 1)
			}
			params[strings.Trim(want, "{}")] = got
		case want != got:
			return nil, false
		}
	}
	return params, true
}
