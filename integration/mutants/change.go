package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// outcome is the result of the tests for a change.
type outcome string

const (
	noticed   outcome = "noticed"
	survived  outcome = "survived"
	unreached outcome = "no test reaches it"
	hung      outcome = "hung"
)

// change is one place of the code that can be made wrong.
type change struct {
	number   int
	file     string // relative to the repository
	function string
	line     int
	kind     string
	text     string // the code that is changed, on one line
	again    int    // counts changes of the same kind and text in one function, from 1

	inserts []insert
	outcome outcome
}

// insert is text that comes into a file in front of a byte.
type insert struct {
	offset int
	text   string
	// outer orders inserts at one offset: openings go from the outermost, closings from the innermost.
	order int
}

// name identifies the change as long as its function is not rewritten. Lines may move.
func (c *change) name() string {
	name := fmt.Sprintf("%s %s: %s `%s`", c.file, c.function, c.kind, c.text)
	if c.again > 1 {
		name += fmt.Sprintf(" #%d", c.again)
	}
	return name
}

// finder collects the changes of one file.
type finder struct {
	set      *token.FileSet
	name     string
	source   []byte
	function string
	next     *int
	changes  []*change
	seen     map[string]int
	depth    int
	skip     map[ast.Node]bool
}

// findChanges returns the changes of a file. The numbers go on from next.
func findChanges(name string, source []byte, next *int) ([]*change, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{set: set, name: name, source: source, next: next, seen: map[string]int{}, skip: map[ast.Node]bool{}}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		f.function = functionName(function)
		f.walk(function.Body)
	}
	return f.changes, nil
}

func functionName(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver = of.X
			continue
		case *ast.IndexExpr:
			receiver = of.X
			continue
		case *ast.Ident:
			return of.Name + "." + function.Name.Name
		}
		return function.Name.Name
	}
}

func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(node ast.Node) bool {
		if node == nil {
			f.depth--
			return false
		}
		f.depth++
		f.visit(node)
		return true
	})
}

func (f *finder) visit(node ast.Node) {
	switch node := node.(type) {
	case *ast.IfStmt:
		f.condition("negate", node.Cond)
	case *ast.ForStmt:
		if node.Cond != nil {
			f.wrap("never loop", "mutantAnd", node.Cond)
		}
	case *ast.SwitchStmt:
		if node.Tag == nil {
			for _, clause := range node.Body.List {
				for _, expression := range clause.(*ast.CaseClause).List {
					f.condition("negate", expression)
				}
			}
		}
	case *ast.ReturnStmt:
		for _, result := range node.Results {
			if isCondition(result) {
				f.condition("negate", result)
			}
		}
	case *ast.BinaryExpr:
		f.binary(node)
	case *ast.BlockStmt:
		f.statements(node.List)
	case *ast.CaseClause:
		f.statements(node.Body)
	case *ast.CommClause:
		f.statements(node.Body)
	}
}

// isCondition reports whether an expression is a bool by its form alone. Names and calls may be of any type.
func isCondition(expression ast.Expr) bool {
	switch expression := expression.(type) {
	case *ast.ParenExpr:
		return isCondition(expression.X)
	case *ast.UnaryExpr:
		return expression.Op == token.NOT
	case *ast.BinaryExpr:
		switch expression.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		}
	}
	return false
}

func (f *finder) condition(kind string, expression ast.Expr) { f.wrap(kind, "mutantNot", expression) }

func (f *finder) binary(node *ast.BinaryExpr) {
	switch node.Op {
	case token.LAND:
		f.wrap("leave out", "mutantOr", node.X)
		f.wrap("leave out", "mutantOr", node.Y)
	case token.LOR:
		f.wrap("leave out", "mutantAnd", node.X)
		f.wrap("leave out", "mutantAnd", node.Y)
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.bound(node)
	}
}

// bound moves the bound of a comparison by one: < becomes <=, and so on.
func (f *finder) bound(node *ast.BinaryExpr) {
	call := map[token.Token]string{
		token.LSS: "mutantLess", token.LEQ: "mutantLessOrEqual", token.GTR: "mutantGreater", token.GEQ: "mutantGreaterOrEqual",
	}[node.Op]
	c := f.add("move the bound", node)
	operator := f.offset(node.OpPos)
	c.inserts = append(c.inserts,
		f.opening(node.Pos(), fmt.Sprintf("%s(%d, ", call, c.number)),
		insert{offset: operator, text: ", /*", order: 0},
		insert{offset: operator + len(node.Op.String()), text: "*/ ", order: 0},
		f.closing(node.End(), ")"))
}

// statements leaves out statements that give nothing to those after them.
func (f *finder) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch statement := statement.(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.IncDecStmt, *ast.SendStmt:
			f.leaveOut(statement)
		case *ast.AssignStmt:
			if statement.Tok != token.DEFINE {
				f.leaveOut(statement)
			}
		}
	}
}

func (f *finder) leaveOut(statement ast.Stmt) {
	c := f.add("leave out", statement)
	c.inserts = append(c.inserts,
		f.opening(statement.Pos(), fmt.Sprintf("if !mutantOn(%d) { ", c.number)),
		f.closing(statement.End(), " }"))
}

// wrap puts an expression into a call of one of the switches.
func (f *finder) wrap(kind, call string, expression ast.Expr) {
	c := f.add(kind, expression)
	c.inserts = append(c.inserts,
		f.opening(expression.Pos(), fmt.Sprintf("%s(%d, ", call, c.number)),
		f.closing(expression.End(), ")"))
}

func (f *finder) opening(position token.Pos, text string) insert {
	return insert{offset: f.offset(position), text: text, order: 1000 + f.depth}
}

func (f *finder) closing(position token.Pos, text string) insert {
	return insert{offset: f.offset(position), text: text, order: -f.depth}
}

func (f *finder) offset(position token.Pos) int { return f.set.Position(position).Offset }

func (f *finder) add(kind string, node ast.Node) *change {
	*f.next++
	text := strings.Join(strings.Fields(string(f.source[f.offset(node.Pos()):f.offset(node.End())])), " ")
	if len(text) > 90 {
		text = strings.ToValidUTF8(text[:90], "") + "…"
	}
	c := &change{number: *f.next, file: f.name, function: f.function, line: f.set.Position(node.Pos()).Line, kind: kind, text: text}
	key := f.function + kind + text
	f.seen[key]++
	c.again = f.seen[key]
	f.changes = append(f.changes, c)
	return c
}

// changed returns the file with all changes in it. Lines keep their numbers, so that the place of a compiler error is
// found again.
func changed(source []byte, changes []*change) []byte {
	var inserts []insert
	for _, c := range changes {
		inserts = append(inserts, c.inserts...)
	}
	slices.SortStableFunc(inserts, func(a, b insert) int {
		if a.offset != b.offset {
			return a.offset - b.offset
		}
		return a.order - b.order
	})
	var out []byte
	at := 0
	for _, each := range inserts {
		out = append(out, source[at:each.offset]...)
		out = append(out, each.text...)
		at = each.offset
	}
	return append(out, source[at:]...)
}
