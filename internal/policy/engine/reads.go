package engine

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// reads lists the parts of a request that an expression can look at, by its text. It may list too much, never too
// little.
type reads struct {
	arguments bool       // all of request.resource.attr
	members   []string   // otherwise only these members of it
	names     []readName // of members below those, or of all members at every depth that it looks at
	principal bool       // request.principal
	claims    bool       // request.principal.attr
	roles     bool       // request.principal.roles or groups
	action    bool       // request.action
	loops     bool       // it holds a loop over a list or map
}

// anyArgument reports whether the expression can look at an argument.
func (r *reads) anyArgument() bool { return r.arguments || len(r.members) > 0 }

// unknowable reports whether the expression reads something that is unknown in a list.
func (r *reads) unknowable() bool { return r.anyArgument() || r.action }

func readsOf(e ast.Expr) reads {
	v := visitor{}
	v.visit(e)
	if v.arguments {
		for _, name := range v.members {
			v.name(name)
		}
	}
	if v.arguments || v.loops || v.computed {
		// Here an expression may compare names of members with texts: R.attr.exists(k, k == 'path').
		for _, text := range v.texts {
			v.name(text)
		}
	}
	return v.reads
}

// visitor walks through an expression.
type visitor struct {
	reads
	texts    []string // texts that are written in the expression
	computed bool     // the expression looks up a member by a name that it computes
}

// name notes that the expression looks at members of that name, in any value.
func (r *reads) name(name string) {
	if !slices.ContainsFunc(r.names, func(n readName) bool { return n.name == name }) {
		r.names = append(r.names, readName{name, string(folded([]byte(name)))})
	}
}

// member notes a lookup by a name. It notes the name itself only if the expression writes it as a text.
func (v *visitor) member(name ast.Expr) {
	if name.Kind() != ast.LiteralKind {
		v.computed = true
		return
	}
	if text, ok := name.AsLiteral().(types.String); ok {
		v.name(string(text))
	}
}

// search notes a search in a value. It counts as a lookup by name, unless the value cannot hold arguments with names.
func (v *visitor) search(what, in ast.Expr) {
	path, _ := pathOf(in)
	if in.Kind() == ast.ListKind || len(path) > 0 && path[0] != "resource" {
		return
	}
	v.member(what)
}

// visit follows paths such as request.resource.attr.x from their root as far as they are written out. Any other use of
// a root counts as a look at everything below it. A loop variable with the name of a root hides the root. visit still
// takes it for the root, which is the safe mistake.
func (v *visitor) visit(e ast.Expr) {
	if path, ok := pathOf(e); ok {
		v.path(path)
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			v.visit(call.Target())
		}
		for _, a := range call.Args() {
			v.visit(a)
		}
		switch call.FunctionName() {
		case operators.Index:
			v.search(call.Args()[1], call.Args()[0])
		case operators.In, operators.OldIn:
			v.search(call.Args()[0], call.Args()[1])
		}
	case ast.LiteralKind:
		if text, ok := e.AsLiteral().(types.String); ok {
			v.texts = append(v.texts, string(text))
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		v.loops = true
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			v.visit(part)
		}
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			v.visit(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			v.visit(entry.AsMapEntry().Key())
			v.member(entry.AsMapEntry().Key())
			v.visit(entry.AsMapEntry().Value())
		}
	case ast.SelectKind:
		v.visit(e.AsSelect().Operand())
		v.name(e.AsSelect().FieldName())
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			v.visit(field.AsStructField().Value())
		}
	}
}

// path notes a look at the value of that path below request. A path that ends above a leaf stands for everything below
// it.
func (r *reads) path(path []string) {
	at := func(i int, name string) bool { return len(path) <= i || path[i] == name }
	if at(0, "action") {
		r.action = true
	}
	if at(0, "principal") {
		r.principal = true
	}
	if at(0, "principal") && at(1, "attr") {
		r.claims = true
	}
	if at(0, "principal") && (at(1, "roles") || at(1, "groups")) {
		r.roles = true
	}
	if at(0, "resource") && at(1, "attr") {
		switch {
		case len(path) < 3:
			r.arguments = true
		case !slices.Contains(r.members, path[2]):
			r.members = append(r.members, path[2])
		}
		for i := 3; i < len(path); i++ {
			r.name(path[i])
		}
	}
}

// pathOf returns the path of names below request that an expression writes. It returns false for any other expression.
func pathOf(e ast.Expr) ([]string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		switch strings.TrimPrefix(e.AsIdent(), ".") {
		case "request":
			return []string{}, true
		case "R":
			return []string{"resource"}, true
		case "P":
			return []string{"principal"}, true
		}
	case ast.SelectKind:
		if path, ok := pathOf(e.AsSelect().Operand()); ok {
			return append(path, e.AsSelect().FieldName()), true
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			break
		}
		name, isString := call.Args()[1].AsLiteral().(types.String)
		if path, ok := pathOf(call.Args()[0]); ok && isString {
			return append(path, string(name)), true
		}
	}
	return nil, false
}
