package platformapi

import (
	"fmt"
	"slices"
	"strings"
)

// role is who may call a route.
type role string

const (
	public role = "public" // without a token
	user   role = "user"   // every user of the organization
	admin  role = "admin"  // those with the issuer's administrator role
)

// organizationRule is whose objects a route works on.
type organizationRule string

const (
	noOrganization  organizationRule = "none"
	ownOrganization organizationRule = "own" // the caller's only; another's are answered like unknown ones
)

// auditClass is what kind of event a request on a route is.
type auditClass string

const (
	auditNone       auditClass = "none"
	auditRead       auditClass = "read"
	auditConnection auditClass = "connection"
	auditAdminWrite auditClass = "admin_write"
	auditApproval   auditClass = "approval" // a word on a held call
)

// route is one operation. serve returns the body of a 200, nil for a 204, or why the request is refused.
type route struct {
	method       string
	path         string // segments in braces are parameters
	role         role
	organization organizationRule
	audit        auditClass
	serve        func(*request) (any, error)
}

// check reports what a route leaves unsaid (attack R07).
func (r route) check() error {
	switch {
	case r.method == "" || !strings.HasPrefix(r.path, "/") || r.serve == nil:
		return fmt.Errorf("route %s %s: method, path and function are required", r.method, r.path)
	case !slices.Contains([]role{public, user, admin}, r.role):
		return fmt.Errorf("route %s %s: unknown role %q", r.method, r.path, r.role)
	case !slices.Contains([]organizationRule{noOrganization, ownOrganization}, r.organization):
		return fmt.Errorf("route %s %s: unknown organization rule %q", r.method, r.path, r.organization)
	case !slices.Contains([]auditClass{auditNone, auditRead, auditConnection, auditAdminWrite, auditApproval}, r.audit):
		return fmt.Errorf("route %s %s: unknown audit class %q", r.method, r.path, r.audit)
	case (r.role == public) != (r.organization == noOrganization):
		return fmt.Errorf("route %s %s: a route without an organization is public, and only that", r.method, r.path)
	}
	return nil
}

// address is all operations on one path.
type address struct {
	segments []string
	methods  map[string]*route
	allow    string // value of Allow: its methods
}

// addresses are in the order in which they are tried: literal segments come before parameters.
type addresses []*address

// mustTable makes the table of routes. It panics on a route that is not declared in full, or twice.
func mustTable(routes []route) addresses {
	byPath := make(map[string]*address)
	var all addresses
	for _, r := range routes {
		if err := r.check(); err != nil {
			panic(err)
		}
		a := byPath[r.path]
		if a == nil {
			a = &address{segments: strings.Split(r.path, "/"), methods: make(map[string]*route)}
			byPath[r.path] = a
			all = append(all, a)
		}
		if a.methods[r.method] != nil {
			panic(fmt.Errorf("route %s %s is declared twice", r.method, r.path))
		}
		a.methods[r.method] = &r
		a.allow = strings.TrimPrefix(a.allow+", "+r.method, ", ")
	}
	slices.SortStableFunc(all, func(a, b *address) int { return slices.CompareFunc(a.segments, b.segments, literalFirst) })
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

// find returns the address of a path and its parameters, nil when there is none. Paths are compared byte by byte and as a
// whole: letters in another case, a slash at the end or an empty segment make another path (attacks P01, P02).
func (all addresses) find(path string) (*address, map[string]string) {
	segments := strings.Split(path, "/")
	for _, a := range all {
		if params, ok := a.match(segments); ok {
			return a, params
		}
	}
	return nil, nil
}

func (a *address) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(a.segments) {
		return nil, false
	}
	var params map[string]string
	for i, want := range a.segments {
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
