package storagetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ParsePackage parses the files of a package that are no tests.
func ParsePackage(tb testing.TB, dir string) (*token.FileSet, []*ast.File) {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		tb.Fatalf("%s has no files (error %v)", dir, err)
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			tb.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	return files, parsed
}

// Statements returns the values of the text constants of a package's files by name, as they are in the source.
func Statements(tb testing.TB, files []*ast.File) map[string]string {
	tb.Helper()
	exprs := make(map[string]ast.Expr)
	for _, f := range files {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				for i, name := range spec.(*ast.ValueSpec).Names {
					if i < len(spec.(*ast.ValueSpec).Values) {
						exprs[name.Name] = spec.(*ast.ValueSpec).Values[i]
					}
				}
			}
		}
	}
	var value func(e ast.Expr) (string, bool)
	value = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(e.Value)
			return text, e.Kind == token.STRING && err == nil
		case *ast.Ident:
			return value(exprs[e.Name])
		case *ast.BinaryExpr:
			x, ok := value(e.X)
			y, ok2 := value(e.Y)
			return x + y, ok && ok2
		}
		return "", false
	}
	texts := make(map[string]string)
	for name, e := range exprs {
		if text, ok := value(e); ok {
			texts[name] = text
		}
	}
	return texts
}

// Statement returns the value of one text constant of a package.
func Statement(tb testing.TB, dir, name string) string {
	tb.Helper()
	_, files := ParsePackage(tb, dir)
	text, ok := Statements(tb, files)[name]
	if !ok {
		tb.Fatalf("%s has no text constant %s", dir, name)
	}
	return text
}
